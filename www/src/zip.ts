// Archives. Loaded when the first one comes.
import { unzipSync } from "fflate";

/** Larger than this nobody means: a small archive may unpack to anything. */
const LARGEST = 512 * 1024 * 1024;

/** The files of an archive by name. */
export function unzip(bytes: Uint8Array): Record<string, Uint8Array> {
  let total = 0;
  return unzipSync(bytes, {
    filter: ({ name, originalSize }) => {
      total += originalSize;
      if (total > LARGEST)
        throw new Error(
          "the archive holds more than 512 MB: unpack it, and add its files in parts",
        );
      return !name.endsWith("/");
    },
  });
}

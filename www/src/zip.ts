// Archives. Loaded when the first one is opened.
import { unzipSync } from "fflate";

/** The maximum size of the unpacked files in bytes. A small archive may unpack to any size. */
const LARGEST = 512 * 1024 * 1024;

/** Returns the files of an archive by name. */
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

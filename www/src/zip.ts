// Archives. Loaded when the first one is opened.
import { unzipSync } from "fflate";

/** The maximum size of the unpacked files in bytes. A small archive may unpack to any size. */
const LARGEST = 512 * 1024 * 1024;

/** Returns the files of an archive by name. `tooLarge` makes the error about more megabytes. */
export function unzip(
  bytes: Uint8Array,
  tooLarge: (megabytes: number) => Error,
): Record<string, Uint8Array> {
  let total = 0;
  return unzipSync(bytes, {
    filter: ({ name, originalSize }) => {
      total += originalSize;
      if (total > LARGEST) throw tooLarge(LARGEST / 1024 / 1024);
      return !name.endsWith("/");
    },
  });
}

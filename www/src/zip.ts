// ZIP archives. The module is loaded when the user opens the first archive.
import { unzipSync } from "fflate";

/** The maximum size of the unpacked files in bytes. A small archive may expand to any size. */
const LARGEST = 512 * 1024 * 1024;

/** Returns the files of an archive by name. `tooLarge` creates the error about the maximum size. */
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

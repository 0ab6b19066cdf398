// The files that the user chooses or drops, including those in folders and archives.
import { Fault, isTranslated, reasonOf } from "./fault";

declare const ZIP_URL: string;

/** A file with its text. */
export interface TextFile {
  name: string;
  text(): Promise<string>;
}

/** Files that operating systems add to folders. They have no content for a repository. */
const JUNK = /(^|\/)(\.|__MACOSX|Thumbs\.db)/;

/** Returns all files of a drop, including those in folders. */
export async function dropped(transfer: DataTransfer): Promise<File[]> {
  // The browser clears the list after the event, so the entries are read before the first `await`.
  const entries = [...transfer.items]
    .map((item) => item.webkitGetAsEntry())
    .filter((entry) => entry !== null);
  if (entries.length === 0) return [...transfer.files];
  return (await Promise.all(entries.map(within))).flat();
}

async function within(entry: FileSystemEntry): Promise<File[]> {
  if (entry.isFile)
    return [
      await new Promise<File>((resolve, reject) =>
        (entry as FileSystemFileEntry).file(resolve, reject),
      ),
    ];
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  const found: FileSystemEntry[] = [];
  for (;;) {
    // Chromium returns at most a hundred entries for each call, and an empty list at the end.
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) =>
      reader.readEntries(resolve, reject),
    );
    if (some.length === 0) break;
    found.push(...some);
  }
  return (await Promise.all(found.map(within))).flat();
}

/**
 * Returns the texts of files. An archive is replaced by its files. Templates come first, then
 * guides, then documents, because of their dependencies.
 */
export async function textFiles(files: File[]): Promise<TextFile[]> {
  const lists = await Promise.all(
    files.map((file) =>
      /\.zip$/i.test(file.name)
        ? unpacked(file)
        : [{ name: file.webkitRelativePath || file.name, text: () => contentIn(file) }],
    ),
  );
  return lists
    .flat()
    .filter(({ name }) => !JUNK.test(name))
    .sort((a, b) => rank(a.name) - rank(b.name));
}

async function contentIn(file: File): Promise<string> {
  return decoded(new Uint8Array(await file.arrayBuffer()));
}

/** The encodings of byte order marks. */
const MARKS: [string, number[]][] = [
  ["UTF-8", [0xef, 0xbb, 0xbf]],
  ["UTF-16LE", [0xff, 0xfe]],
  ["UTF-16BE", [0xfe, 0xff]],
];

/** The declaration of an XML document up to the name of its encoding. */
const DECLARED = /^(<\?xml\s[^>]*?\bencoding\s*=\s*["'])([\w.:-]+)/i;
/** The encodings whose declaration cannot be read as text of 8 bits: such a text has another one. */
const WIDE = /^utf-16/i;

/**
 * Decodes a text by its byte order mark, or by the declaration of an XML document, or as UTF-8. A
 * wrong byte is an error: a replacement character would be stored in its place. The text of an XML
 * document declares UTF-8, in which it is sent.
 */
function decoded(bytes: Uint8Array): string {
  const [mark] = MARKS.find(([, start]) => start.every((byte, at) => bytes[at] === byte)) ?? [];
  const start = String.fromCharCode(...bytes.subarray(0, 200));
  const declared = DECLARED.exec(start)?.[2] ?? "UTF-8";
  const encoding = mark ?? (WIDE.test(declared) ? "UTF-8" : declared);
  try {
    const text = new TextDecoder(encoding, { fatal: true }).decode(bytes);
    return text.replace(DECLARED, "$1UTF-8");
  } catch {
    throw new Fault("notDecoded", { encoding });
  }
}

function rank(name: string): number {
  if (/\.opt$/i.test(name)) return 0;
  return /\.gdl2?(\.json)?$/i.test(name) ? 1 : 2;
}

/**
 * Returns the files of an archive. An archive that cannot be read is returned as one file, whose
 * text is the error: the other files are added nevertheless.
 */
async function unpacked(file: File): Promise<TextFile[]> {
  try {
    return await contentOf(file);
  } catch (error) {
    const fault = isTranslated(error)
      ? error
      : new Fault("archiveDamaged", { reason: reasonOf(error) });
    return [{ name: file.name, text: () => Promise.reject(fault as Error) }];
  }
}

async function contentOf(file: File): Promise<TextFile[]> {
  const { unzip } = (await import(
    new URL(ZIP_URL, document.baseURI).href
  )) as typeof import("./zip");
  const found = unzip(
    new Uint8Array(await file.arrayBuffer()),
    (megabytes) => new Fault("archiveTooLarge", { megabytes }),
  );
  return Object.entries(found).map(([name, bytes]) => ({
    name: `${file.name}/${name}`,
    text: () => Promise.resolve().then(() => decoded(bytes)),
  }));
}

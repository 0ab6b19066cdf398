// What the page and the Service Worker share: the sample settings and the journal of writes, in IndexedDB.
import type { Samples } from "./protocol";

/** A request that changed the repository. Carried out again with the same clock and the same seed, it gives the same versions under the same ids. */
export interface Entry {
  sequence?: number;
  method: string;
  url: string;
  headers: Record<string, string>;
  body: string;
  /** Milliseconds since 1970. */
  now: number;
  seed: string;
}

/** What a repository is built from. */
export interface Origin {
  samples: Samples;
  /** Grows when the repository has to be built anew. */
  generation: number;
}

function settled<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error ?? new Error("IndexedDB failed"));
  });
}

function open(): Promise<IDBDatabase> {
  const request = indexedDB.open("aqlite", 1);
  request.onupgradeneeded = () => {
    request.result.createObjectStore("origin");
    request.result.createObjectStore("journal", { keyPath: "sequence", autoIncrement: true });
  };
  return settled(request);
}

/** The shared storage. Where the browser forbids it (private windows of some), everything still works, and is forgotten at the end. */
export class Shared {
  #database: IDBDatabase | null;
  #fallback: Origin;

  private constructor(database: IDBDatabase | null, fallback: Origin) {
    this.#database = database;
    this.#fallback = fallback;
  }

  static async open(samples: Samples): Promise<Shared> {
    const database = await open().catch(() => null);
    return new Shared(database, { samples, generation: 0 });
  }

  #store(name: "origin" | "journal", mode: IDBTransactionMode): IDBObjectStore | null {
    return this.#database?.transaction(name, mode).objectStore(name) ?? null;
  }

  async origin(): Promise<Origin> {
    const store = this.#store("origin", "readonly");
    if (!store) return this.#fallback;
    return ((await settled(store.get("origin"))) as Origin | undefined) ?? this.#fallback;
  }

  async setOrigin(origin: Origin): Promise<void> {
    this.#fallback = origin;
    const store = this.#store("origin", "readwrite");
    if (store) await settled(store.put(origin, "origin"));
  }

  /** The entries behind this sequence number. */
  async after(sequence: number): Promise<Entry[]> {
    const store = this.#store("journal", "readonly");
    return store ? ((await settled(store.getAll(IDBKeyRange.lowerBound(sequence, true)))) as Entry[]) : [];
  }

  /** Adds an entry; its sequence number, or undefined where nothing can be kept. */
  async append(entry: Entry): Promise<number | undefined> {
    const store = this.#store("journal", "readwrite");
    return store ? ((await settled(store.add(entry))) as number) : undefined;
  }

  /** Removes the entries behind this sequence number. */
  async forget(sequence: number): Promise<void> {
    const store = this.#store("journal", "readwrite");
    if (store) await settled(store.delete(IDBKeyRange.lowerBound(sequence, true)));
  }

  async clear(): Promise<void> {
    const store = this.#store("journal", "readwrite");
    if (store) await settled(store.clear());
  }
}

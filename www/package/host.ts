// Types of the host, in a form that programs without the types of a browser also compile.

/** The class of the host with this name, or `Otherwise` if the program does not declare it. */
type HostClass<Name extends string, Otherwise> =
  typeof globalThis extends Record<Name, { prototype: infer Found }> ? Found : Otherwise;

/** A `Response` of the host. */
export type HostResponse = HostClass<"Response", ResponseLike>;

/** The members of a `Response` that the package reads. */
export interface ResponseLike {
  readonly ok: boolean;
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  arrayBuffer(): Promise<ArrayBuffer>;
}

/** The members of a `Request` that the package reads. */
export interface RequestLike {
  readonly method: string;
  readonly url: string;
  readonly headers: { forEach(see: (value: string, name: string) => void): void };
  text(): Promise<string>;
}

/** The members of an `AbortSignal` that the package reads. */
export interface SignalLike {
  readonly aborted: boolean;
  readonly reason: unknown;
}

/** A compiled module: a `WebAssembly.Module`. */
export type CompiledModule = typeof globalThis extends {
  WebAssembly: { Module: { prototype: infer Found } };
}
  ? Found
  : object;

/** A module that is not compiled: its address, a response, or its bytes. */
export type UncompiledModule =
  string | { readonly href: string } | ResponseLike | ArrayBuffer | ArrayBufferView;

/** The module of `start`. */
export type ModuleSource = UncompiledModule | CompiledModule;

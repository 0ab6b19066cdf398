// The form of a module import in workerd and its bundlers.
declare module "*.wasm" {
  const module: WebAssembly.Module;
  export default module;
}

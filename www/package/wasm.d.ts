// How workerd and its bundlers give a module.
declare module "*.wasm" {
  const module: WebAssembly.Module;
  export default module;
}

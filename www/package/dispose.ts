// The key of the method that `using` calls. Hosts that do not have it yet get the key that
// compilers use there.
export const dispose = (Symbol.dispose ?? Symbol.for("Symbol.dispose")) as typeof Symbol.dispose;

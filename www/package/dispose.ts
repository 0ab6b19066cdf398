// The key of the method that `using` calls. For hosts without `Symbol.dispose`, this is the key that
// compilers use as a substitute.
export const dispose = (Symbol.dispose ?? Symbol.for("Symbol.dispose")) as typeof Symbol.dispose;

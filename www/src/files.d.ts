declare module "*.aql" {
  const text: string;
  export default text;
}

// Attacks that took more than half of the memory of the goal (`GOAL` in `host.mjs`) on a busy machine, which is
// 100 MB. The test command applies wider bounds of memory to them, and the goal to all others.

/** The greatest growth of memory in one or two runs on two cores with a load of 10 to 16, by the name of the attack. */
export const BUSY = new Map([
  ["large: an export: documents of nine megabytes", "128 MB"],
  ["large: all of them at once: documents of nine megabytes", "127 MB"],
  ["large: pages of whole compositions behind those of nine megabytes", "249 MB"],
  ["template: compositions of templates of 5 MB in turn, which no cache holds together", "134 MB"],
  ["sizes: 32 reads of a document of nine megabytes", "247 MB"],
  ["sizes: 32 reads in XML of a document of nine megabytes", "176 MB"],
  ["sizes: clients that go away while they read nine megabytes", "161 MB"],
  ["sizes: a directory of 60,000 folders, written and read", "154 MB"],
]);

// The package in browsers and their workers.
import { browser } from "./browser-host";
import { startIn } from "./start";

export * from "./api";

startIn(browser);

import { checkSeeds } from "./seed-suite.js";

checkSeeds(51, 100);

import { checkSeeds } from "./seed-suite.js";

checkSeeds(1, 50);

// Reads `{"validator", "message", "key"}` from stdin and prints the signature that LUKSO's library makes.
const { readFileSync } = require("node:fs");
const { EIP191Signer } = require("@lukso/eip191-signer.js");

const { validator, message, key } = JSON.parse(readFileSync(0, "utf8"));
process.stdout.write(new EIP191Signer().signDataWithIntendedValidator(validator, message, key).signature);

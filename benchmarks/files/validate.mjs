// Prints what the Khronos validator says of a glTF file, as JSON: node validate.mjs FOLDER_WITH_NODE_MODULES FILE
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

const [folder, file] = process.argv.slice(2);
const validator = createRequire(path.resolve(folder, "package.json"))("gltf-validator");
const report = await validator.validateBytes(new Uint8Array(readFileSync(file)), {
  uri: path.basename(file),
  externalResourceFunction: async (uri) =>
    new Uint8Array(readFileSync(path.join(path.dirname(file), decodeURIComponent(uri)))),
});
console.log(JSON.stringify({ version: validator.version(), issues: report.issues, info: report.info }));

// Prints where three.js puts the named nodes of a glTF file when its clip plays, as JSON (times, nodes, 3):
// node places.mjs FOLDER_WITH_NODE_MODULES FILE TIMES_AS_JSON NAMES_AS_JSON
import { readFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [folder, file, times, names] = process.argv.slice(2);
const home = path.resolve(folder, "node_modules/three");
globalThis.self ??= globalThis;
const THREE = await import(pathToFileURL(path.join(home, "build/three.module.js")));
const { GLTFLoader } = await import(pathToFileURL(path.join(home, "examples/jsm/loaders/GLTFLoader.js")));
const data = readFileSync(file);
const gltf = await new GLTFLoader().parseAsync(data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength), "");
const json = gltf.parser.json;
const found = new Map();
gltf.scene.traverse((object) => {
  const node = gltf.parser.associations.get(object)?.nodes;
  if (node !== undefined) found.set(json.nodes[node].name, object);
});
const mixer = new THREE.AnimationMixer(gltf.scene);
const action = mixer.clipAction(gltf.animations[0]).setLoop(THREE.LoopOnce);
action.clampWhenFinished = true;
action.play();
const out = JSON.parse(times).map((time) => {
  mixer.setTime(time);
  gltf.scene.updateMatrixWorld(true);
  return JSON.parse(names).map((name) => new THREE.Vector3().setFromMatrixPosition(found.get(name).matrixWorld).toArray());
});
console.log(JSON.stringify(out));

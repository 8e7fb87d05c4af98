// Prints where three-vrm puts the bones of a character that plays a VRM animation, as JSON (times, bones, 3):
// node vrm.mjs FOLDER_WITH_NODE_MODULES FILE.vrma SIZE TIMES_AS_JSON BONES_AS_JSON
// The character has the bones of the animation in its T-pose, SIZE times as large.
import { readFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [folder, file, size, times, bones] = process.argv.slice(2);
globalThis.self ??= globalThis;
globalThis.ProgressEvent ??= class {};
const module_ = (name) => import(pathToFileURL(path.resolve(folder, "node_modules", name)));
const THREE = await module_("three/build/three.module.js");
const { GLTFLoader } = await module_("three/examples/jsm/loaders/GLTFLoader.js");
const { VRMLoaderPlugin, VRMRequiredHumanBoneName } = await module_("@pixiv/three-vrm/lib/three-vrm.module.js");
const { VRMAnimationLoaderPlugin, createVRMAnimationClip } = await module_(
  "@pixiv/three-vrm-animation/lib/three-vrm-animation.module.js",
);

const data = readFileSync(file);
const loader = new GLTFLoader();
loader.register((parser) => new VRMAnimationLoaderPlugin(parser));
loader.register((parser) => new VRMLoaderPlugin(parser));
const opened = await loader.parseAsync(data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength), "");

const json = JSON.parse(data.subarray(20, 20 + data.readUInt32LE(12)).toString());
const { humanBones } = json.extensions.VRMC_vrm_animation.humanoid;
const nodes = json.nodes.map((node) => ({ ...node, translation: node.translation.map((x) => x * Number(size)) }));
for (const bone of Object.values(VRMRequiredHumanBoneName)) {
  if (humanBones[bone] === undefined) {
    humanBones[bone] = { node: nodes.length }; // a character has every bone: those that no clip turns stand at the hips
    nodes[humanBones.hips.node].children.push(nodes.length);
    nodes.push({ name: bone, translation: [0, 0, 0] });
  }
}
const body = {
  asset: json.asset,
  scene: 0,
  scenes: json.scenes,
  nodes,
  extensionsUsed: ["VRMC_vrm"],
  extensions: {
    VRMC_vrm: {
      specVersion: "1.0",
      meta: { name: "character", authors: ["nobody"], licenseUrl: "https://vrm.dev/licenses/1.0/" },
      humanoid: { humanBones },
    },
  },
};
const { vrm } = (await loader.parseAsync(JSON.stringify(body), "")).userData;
const mixer = new THREE.AnimationMixer(vrm.scene);
const action = mixer.clipAction(createVRMAnimationClip(opened.userData.vrmAnimations[0], vrm)).setLoop(THREE.LoopOnce);
action.clampWhenFinished = true;
action.play();
const out = JSON.parse(times).map((time) => {
  mixer.setTime(time);
  vrm.update(0);
  vrm.scene.updateMatrixWorld(true);
  return JSON.parse(bones).map((bone) =>
    new THREE.Vector3().setFromMatrixPosition(vrm.humanoid.getRawBoneNode(bone).matrixWorld).toArray(),
  );
});
console.log(JSON.stringify(out));

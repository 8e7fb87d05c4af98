"""Joint names of common rigs, on invented bodies: a tree as text, and the joints that have the roles of a person.

In the text of a tree, ``a > b > c`` is a chain, and chains are separated by semicolons; a chain that begins with a
known joint continues there. ``{L|R}`` stands for both sides. A number after a colon is the length of the bone above the
joint, in centimetres (10 without).
"""

import dataclasses
import re
from typing import NamedTuple

import numpy as np

import synovia as sy


class Rig(NamedTuple):
    """A rig.

    Args:
        tree: The joints.
        roles: Joints by role; a role without a side prefix "left_" or "right_" is of the middle, "*_" of both sides.
        robot: Whether the joints are hinges.
    """

    tree: str
    roles: dict[str, str]
    robot: bool = False


def _limbs(upper_leg, lower_leg, foot, toes, shoulder, upper_arm, lower_arm, hand):
    names = {
        "*_upper_leg": upper_leg, "*_lower_leg": lower_leg, "*_foot": foot, "*_toes": toes, "*_shoulder": shoulder,
        "*_upper_arm": upper_arm, "*_lower_arm": lower_arm, "*_hand": hand,
    }  # fmt: skip
    return {role: name for role, name in names.items() if name}


_WORDS = "Thumb", "Index", "Middle", "Ring", "Pinky"


def _hand(form, words=_WORDS, above=""):
    """Return chains of five fingers with three joints each, below a hand; ``{0}`` is the finger, ``{1}`` the number."""
    chains = []
    for word in words:
        first = [above.format(word)] if above and "humb" not in word else []
        chains.append(" > ".join([*first, *(form.format(word, k) for k in (1, 2, 3))]))
    return chains


_MIXAMO = (
    "{P}Hips > {P}Spine > {P}Spine1 > {P}Spine2 > {P}Neck > {P}Head > {P}HeadTop_End; "
    "{P}Spine2 > {P}{Left|Right}Shoulder > {P}{Left|Right}Arm:15 > {P}{Left|Right}ForeArm:28 > {P}{Left|Right}Hand:27; "
    "{P}Hips > {P}{Left|Right}UpLeg > {P}{Left|Right}Leg:40 > {P}{Left|Right}Foot:42 > {P}{Left|Right}ToeBase:15"
    " > {P}{Left|Right}Toe_End; "
)
_MIXAMO_HAND = "; ".join(f"{{P}}{{Left|Right}}Hand > {chain}" for chain in _hand("{{P}}{{Left|Right}}Hand{0}{1}"))
_MIXAMO_ROLES = {
    "hips": "{P}Hips", "neck": "{P}Neck", "head": "{P}Head",
    **_limbs("{P}{Left|Right}UpLeg", "{P}{Left|Right}Leg", "{P}{Left|Right}Foot", "{P}{Left|Right}ToeBase",
             "{P}{Left|Right}Shoulder", "{P}{Left|Right}Arm", "{P}{Left|Right}ForeArm", "{P}{Left|Right}Hand"),
}  # fmt: skip
_FINGERS = {
    f"*_{role}_{k}": f"{{P}}{{Left|Right}}Hand{word}{k}"
    for role, word in zip(("thumb", "index", "middle", "ring", "little"), _WORDS, strict=True)
    for k in (1, 2, 3)
}


def _prefixed(prefix, tree, roles):
    return Rig(tree.replace("{P}", prefix), {role: name.replace("{P}", prefix) for role, name in roles.items()})


RIGS = {
    "mixamo": _prefixed("mixamorig:", _MIXAMO + _MIXAMO_HAND, _MIXAMO_ROLES | _FINGERS),
    "mixamo, renamed on import": _prefixed("mixamorig1_", _MIXAMO + _MIXAMO_HAND, _MIXAMO_ROLES | _FINGERS),
    "ready player me": _prefixed("", _MIXAMO + _MIXAMO_HAND, _MIXAMO_ROLES | _FINGERS),
    "humanik": _prefixed("Character1_", _MIXAMO, _MIXAMO_ROLES),
    "cmu": Rig(
        "Hips > LHipJoint:0 > LeftUpLeg > LeftLeg:40 > LeftFoot:40 > LeftToeBase; Hips > RHipJoint:0 > RightUpLeg"
        " > RightLeg:40 > RightFoot:40 > RightToeBase; Hips > LowerBack:0 > Spine > Spine1 > Neck:0 > Neck1 > Head;"
        "Spine1 > {Left|Right}Shoulder:0 > {Left|Right}Arm > {Left|Right}ForeArm:25 > {Left|Right}Hand:20"
        " > {Left|Right}FingerBase:0 > {Left|Right}HandIndex1; {Left|Right}Hand > {L|R}Thumb",
        {"hips": "Hips", "neck": "Neck", "head": "Head", "*_index_1": "{Left|Right}HandIndex1",
         "*_thumb_1": "{L|R}Thumb",
         **_limbs("{Left|Right}UpLeg", "{Left|Right}Leg", "{Left|Right}Foot", "{Left|Right}ToeBase",
                  "{Left|Right}Shoulder", "{Left|Right}Arm", "{Left|Right}ForeArm", "{Left|Right}Hand")},
    ),
    "cmu, acclaim": Rig(
        "root > {l|r}hipjoint:0 > {l|r}femur > {l|r}tibia:40 > {l|r}foot:40 > {l|r}toes; root > lowerback:0 > upperback"
        " > thorax > lowerneck > upperneck > head; thorax > {l|r}clavicle > {l|r}humerus > {l|r}radius:28"
        " > {l|r}wrist:20 > {l|r}hand:2 > {l|r}fingers; {l|r}wrist > {l|r}thumb",
        {"hips": "root", "neck": "lowerneck", "head": "head",
         **_limbs("{l|r}femur", "{l|r}tibia", "{l|r}foot", "{l|r}toes", "{l|r}clavicle", "{l|r}humerus", "{l|r}radius",
                  "{l|r}wrist")},
    ),
    "lafan1": Rig(
        "Hips > {Left|Right}UpLeg > {Left|Right}Leg:40 > {Left|Right}Foot:42 > {Left|Right}Toe; Hips > Spine > Spine1"
        " > Spine2 > Neck > Head; Spine2 > {Left|Right}Shoulder > {Left|Right}Arm > {Left|Right}ForeArm:33"
        " > {Left|Right}Hand:25",
        {"hips": "Hips", "neck": "Neck", "head": "Head",
         **_limbs("{Left|Right}UpLeg", "{Left|Right}Leg", "{Left|Right}Foot", "{Left|Right}Toe", "{Left|Right}Shoulder",
                  "{Left|Right}Arm", "{Left|Right}ForeArm", "{Left|Right}Hand")},
    ),
    "bandai": Rig(
        "joint_Root > Hips > Spine > Chest > Neck > Head; Chest > Shoulder_{L|R} > UpperArm_{L|R} > LowerArm_{L|R}:28"
        " > Hand_{L|R}:25; Hips > UpperLeg_{L|R} > LowerLeg_{L|R}:40 > Foot_{L|R}:40 > Toes_{L|R}",
        {"hips": "Hips", "neck": "Neck", "head": "Head",
         **_limbs("UpperLeg_{L|R}", "LowerLeg_{L|R}", "Foot_{L|R}", "Toes_{L|R}", "Shoulder_{L|R}", "UpperArm_{L|R}",
                  "LowerArm_{L|R}", "Hand_{L|R}")},
    ),
    "rokoko": Rig(
        _MIXAMO.replace("{P}", "") + "; ".join(
            f"{{Left|Right}}Hand > {chain}"
            for chain in _hand("{{Left|Right}}Hand{0}{1}", above="{{Left|Right}}InHand{0}")
        ),
        {role: name.replace("{P}", "") for role, name in (_MIXAMO_ROLES | _FINGERS).items()},
    ),
    "perception neuron": Rig(
        _MIXAMO.replace("{P}", "Robot_") + "; ".join(
            f"Robot_{{Left|Right}}Hand > {chain}"
            for chain in _hand("Robot_{{Left|Right}}Hand{0}{1}", above="Robot_{{Left|Right}}InHand{0}")
        ),
        {role: name.replace("{P}", "Robot_") for role, name in (_MIXAMO_ROLES | _FINGERS).items()},
    ),
    "vrm": Rig(
        "Root > J_Bip_C_Hips > J_Bip_C_Spine > J_Bip_C_Chest > J_Bip_C_UpperChest > J_Bip_C_Neck > J_Bip_C_Head;"
        "J_Bip_C_Head > J_Adj_{L|R}_FaceEye; J_Bip_C_UpperChest > J_Sec_{L|R}_Bust1; "
        "J_Bip_C_UpperChest > J_Bip_{L|R}_Shoulder > J_Bip_{L|R}_UpperArm > J_Bip_{L|R}_LowerArm:25"
        " > J_Bip_{L|R}_Hand:22; J_Bip_C_Hips > J_Bip_{L|R}_UpperLeg > J_Bip_{L|R}_LowerLeg:40 > J_Bip_{L|R}_Foot:40"
        " > J_Bip_{L|R}_ToeBase; J_Bip_C_Hips > J_Sec_{L|R}_SkirtFront0_01; "
        + "; ".join(
            f"J_Bip_{{L|R}}_Hand > {chain}"
            for chain in _hand("J_Bip_{{L|R}}_{0}{1}", ("Thumb", "Index", "Middle", "Ring", "Little"))
        ),
        {"hips": "J_Bip_C_Hips", "chest": "J_Bip_C_UpperChest", "neck": "J_Bip_C_Neck", "head": "J_Bip_C_Head",
         "*_little_2": "J_Bip_{L|R}_Little2", "*_thumb_1": "J_Bip_{L|R}_Thumb1",
         **_limbs("J_Bip_{L|R}_UpperLeg", "J_Bip_{L|R}_LowerLeg", "J_Bip_{L|R}_Foot", "J_Bip_{L|R}_ToeBase",
                  "J_Bip_{L|R}_Shoulder", "J_Bip_{L|R}_UpperArm", "J_Bip_{L|R}_LowerArm", "J_Bip_{L|R}_Hand")},
    ),
    "vrm, names of the humanoid": Rig(
        "hips > spine > chest > neck > head; chest > {left|right}Shoulder > {left|right}UpperArm"
        " > {left|right}LowerArm:25 > {left|right}Hand:22 > {left|right}LittleProximal > {left|right}LittleIntermediate"
        " > {left|right}LittleDistal; {left|right}Hand > {left|right}ThumbMetacarpal > {left|right}ThumbProximal;"
        "hips > {left|right}UpperLeg > {left|right}LowerLeg:40 > {left|right}Foot:40 > {left|right}Toes",
        {"hips": "hips", "chest": "chest", "head": "head", "*_little_1": "{left|right}LittleProximal",
         "*_little_3": "{left|right}LittleDistal", "*_thumb_1": "{left|right}ThumbMetacarpal",
         **_limbs("{left|right}UpperLeg", "{left|right}LowerLeg", "{left|right}Foot", "{left|right}Toes",
                  "{left|right}Shoulder", "{left|right}UpperArm", "{left|right}LowerArm", "{left|right}Hand")},
    ),
    "unreal": Rig(
        "root > pelvis > spine_01 > spine_02 > spine_03 > spine_04 > spine_05 > neck_01 > neck_02 > head;"
        "spine_05 > clavicle_{l|r} > upperarm_{l|r} > lowerarm_{l|r}:28 > hand_{l|r}:26;"
        "upperarm_{l|r} > upperarm_twist_01_{l|r}; lowerarm_{l|r} > lowerarm_twist_01_{l|r}; "
        "pelvis > thigh_{l|r} > calf_{l|r}:42 > foot_{l|r}:42 > ball_{l|r}; thigh_{l|r} > thigh_twist_01_{l|r};"
        "root > ik_foot_root > ik_foot_{l|r}; root > ik_hand_root > ik_hand_gun > ik_hand_{l|r}; "
        + "; ".join(
            f"hand_{{l|r}} > {chain}"
            for chain in _hand(
                "{0}_0{1}_{{l|r}}", ("thumb", "index", "middle", "ring", "pinky"), above="{0}_metacarpal_{{l|r}}"
            )
        ),
        {"hips": "pelvis", "neck": "neck_01", "head": "head", "*_index_1": "index_01_{l|r}",
         "*_little_3": "pinky_03_{l|r}", "*_thumb_1": "thumb_01_{l|r}",
         **_limbs("thigh_{l|r}", "calf_{l|r}", "foot_{l|r}", "ball_{l|r}", "clavicle_{l|r}", "upperarm_{l|r}",
                  "lowerarm_{l|r}", "hand_{l|r}")},
    ),
    "rigify, deforming bones": Rig(
        "root > DEF-spine > DEF-spine.001 > DEF-spine.002 > DEF-spine.003 > DEF-spine.004 > DEF-spine.005"
        " > DEF-spine.006; DEF-spine > DEF-pelvis.{L|R}; DEF-spine.003 > DEF-breast.{L|R};"
        "DEF-spine > DEF-thigh.{L|R} > DEF-thigh.{L|R}.001:20 > DEF-shin.{L|R}:20 > DEF-shin.{L|R}.001:20"
        " > DEF-foot.{L|R}:20 > DEF-toe.{L|R}; DEF-spine.003 > DEF-shoulder.{L|R} > DEF-upper_arm.{L|R}"
        " > DEF-upper_arm.{L|R}.001:14 > DEF-forearm.{L|R}:14 > DEF-forearm.{L|R}.001:12 > DEF-hand.{L|R}:12"
        " > DEF-palm.01.{L|R} > DEF-f_index.01.{L|R} > DEF-f_index.02.{L|R}; DEF-hand.{L|R} > DEF-thumb.01.{L|R};"
        "root > ORG-spine > ORG-thigh.{L|R} > ORG-shin.{L|R}:40 > ORG-foot.{L|R}:40;"
        "root > MCH-thigh_ik.{L|R}",
        {"hips": "DEF-spine", "head": "DEF-spine.006", "neck": "DEF-spine.004", "*_index_1": "DEF-f_index.01.{L|R}",
         "*_thumb_1": "DEF-thumb.01.{L|R}",
         **_limbs("DEF-thigh.{L|R}", "DEF-shin.{L|R}", "DEF-foot.{L|R}", "DEF-toe.{L|R}", "DEF-shoulder.{L|R}",
                  "DEF-upper_arm.{L|R}", "DEF-forearm.{L|R}", "DEF-hand.{L|R}")},
    ),
    "smpl": Rig(
        "Pelvis > {L|R}_Hip > {L|R}_Knee:40 > {L|R}_Ankle:42 > {L|R}_Foot; Pelvis > Spine1 > Spine2 > Spine3 > Neck"
        " > Head; Spine3 > {L|R}_Collar > {L|R}_Shoulder > {L|R}_Elbow:26 > {L|R}_Wrist:25 > {L|R}_Hand",
        {"hips": "Pelvis", "neck": "Neck", "head": "Head",
         **_limbs("{L|R}_Hip", "{L|R}_Knee", "{L|R}_Ankle", "{L|R}_Foot", "{L|R}_Collar", "{L|R}_Shoulder",
                  "{L|R}_Elbow", "{L|R}_Wrist")},
    ),
    "smpl-x": Rig(
        "pelvis > {left|right}_hip > {left|right}_knee:40 > {left|right}_ankle:42 > {left|right}_foot; pelvis > spine1"
        " > spine2 > spine3 > neck > head > jaw; head > {left|right}_eye_smplhf; spine3 > {left|right}_collar"
        " > {left|right}_shoulder > {left|right}_elbow:26 > {left|right}_wrist:25 > {left|right}_index1"
        " > {left|right}_index2; {left|right}_wrist > {left|right}_pinky1; {left|right}_wrist > {left|right}_thumb1",
        {"hips": "pelvis", "neck": "neck", "head": "head", "*_index_2": "{left|right}_index2",
         "*_little_1": "{left|right}_pinky1",
         **_limbs("{left|right}_hip", "{left|right}_knee", "{left|right}_ankle", "{left|right}_foot",
                  "{left|right}_collar", "{left|right}_shoulder", "{left|right}_elbow", "{left|right}_wrist")},
    ),
    "xsens": Rig(
        "Pelvis > L5 > L3 > T12 > T8 > Neck > Head; T8 > {Left|Right}Shoulder > {Left|Right}UpperArm"
        " > {Left|Right}ForeArm:28 > {Left|Right}Hand:25; Pelvis > {Left|Right}UpperLeg > {Left|Right}LowerLeg:42"
        " > {Left|Right}Foot:40 > {Left|Right}Toe",
        {"hips": "Pelvis", "neck": "Neck", "head": "Head", "chest": "T8",
         **_limbs("{Left|Right}UpperLeg", "{Left|Right}LowerLeg", "{Left|Right}Foot", "{Left|Right}Toe",
                  "{Left|Right}Shoulder", "{Left|Right}UpperArm", "{Left|Right}ForeArm", "{Left|Right}Hand")},
    ),
    "xsens, bvh": Rig(
        "Hips > Chest > Chest2 > Chest3 > Chest4 > Neck > Head; Chest4 > {Left|Right}Collar > {Left|Right}Shoulder"
        " > {Left|Right}Elbow:28 > {Left|Right}Wrist:25; Hips > {Left|Right}Hip > {Left|Right}Knee:42"
        " > {Left|Right}Ankle:40 > {Left|Right}Toe",
        {"hips": "Hips", "neck": "Neck", "head": "Head",
         **_limbs("{Left|Right}Hip", "{Left|Right}Knee", "{Left|Right}Ankle", "{Left|Right}Toe", "{Left|Right}Collar",
                  "{Left|Right}Shoulder", "{Left|Right}Elbow", "{Left|Right}Wrist")},
    ),
    "3ds max biped": Rig(
        "Bip01 > Bip01 Pelvis > Bip01 Spine > Bip01 Spine1 > Bip01 Neck > Bip01 Head; Bip01 Neck > Bip01 {L|R} Clavicle"
        " > Bip01 {L|R} UpperArm > Bip01 {L|R} Forearm:28 > Bip01 {L|R} Hand:25; Bip01 Pelvis > Bip01 {L|R} Thigh"
        " > Bip01 {L|R} Calf:42 > Bip01 {L|R} Foot:40 > Bip01 {L|R} Toe0",
        {"hips": "Bip01 Pelvis", "neck": "Bip01 Neck", "head": "Bip01 Head",
         **_limbs("Bip01 {L|R} Thigh", "Bip01 {L|R} Calf", "Bip01 {L|R} Foot", "Bip01 {L|R} Toe0",
                  "Bip01 {L|R} Clavicle", "Bip01 {L|R} UpperArm", "Bip01 {L|R} Forearm", "Bip01 {L|R} Hand")},
    ),
    "daz genesis": Rig(
        "hip > pelvis > {l|r}ThighBend > {l|r}ThighTwist:20 > {l|r}Shin:20 > {l|r}Foot:40 > {l|r}Toe;"
        "hip > abdomenLower > abdomenUpper > chestLower > chestUpper > neckLower > neckUpper > head;"
        "chestUpper > {l|r}Collar > {l|r}ShldrBend > {l|r}ShldrTwist:14 > {l|r}ForearmBend:14 > {l|r}ForearmTwist:12"
        " > {l|r}Hand:12 > {l|r}Index1 > {l|r}Index2",
        {"hips": "pelvis", "spine": "abdomenLower", "chest": "chestUpper", "neck": "neckLower", "head": "head",
         "*_index_2": "{l|r}Index2",
         **_limbs("{l|r}ThighBend", "{l|r}Shin", "{l|r}Foot", "{l|r}Toe", "{l|r}Collar", "{l|r}ShldrBend",
                  "{l|r}ForearmBend", "{l|r}Hand")},
    ),
    "g1": Rig(
        "pelvis > {left|right}_hip_pitch_joint:12 > {left|right}_hip_roll_joint:5 > {left|right}_hip_yaw_joint:13"
        " > {left|right}_knee_joint:19 > {left|right}_ankle_pitch_joint:30 > {left|right}_ankle_roll_joint:2;"
        "pelvis > waist_yaw_joint:0 > waist_roll_joint:4 > waist_pitch_joint:0 > {left|right}_shoulder_pitch_joint:25"
        " > {left|right}_shoulder_roll_joint:4 > {left|right}_shoulder_yaw_joint:10 > {left|right}_elbow_joint:8"
        " > {left|right}_wrist_roll_joint:10 > {left|right}_wrist_pitch_joint:4 > {left|right}_wrist_yaw_joint:5"
        " > {left|right}_hand_thumb_0_joint > {left|right}_hand_thumb_1_joint; {left|right}_wrist_yaw_joint"
        " > {left|right}_hand_index_0_joint",
        {"hips": "pelvis", "chest": "waist_pitch_joint", "*_thumb_2": "{left|right}_hand_thumb_1_joint",
         **_limbs("{left|right}_hip_yaw_joint", "{left|right}_knee_joint", "{left|right}_ankle_roll_joint", "", "",
                  "{left|right}_shoulder_yaw_joint", "{left|right}_elbow_joint", "{left|right}_wrist_yaw_joint")},
        robot=True,
    ),
    "h1": Rig(
        "pelvis > {left|right}_hip_yaw_joint > {left|right}_hip_roll_joint:4 > {left|right}_hip_pitch_joint:12"
        " > {left|right}_knee_joint:40 > {left|right}_ankle_joint:40; pelvis > torso_joint"
        " > {left|right}_shoulder_pitch_joint:40 > {left|right}_shoulder_roll_joint:5 > {left|right}_shoulder_yaw_joint"
        " > {left|right}_elbow_joint:18",
        {"hips": "pelvis", "chest": "torso_joint",
         **_limbs("{left|right}_hip_pitch_joint", "{left|right}_knee_joint", "{left|right}_ankle_joint", "", "",
                  "{left|right}_shoulder_yaw_joint", "{left|right}_elbow_joint", "")},
        robot=True,
    ),
    "t1": Rig(
        "Trunk > AAHead_yaw:20 > Head_pitch:6; Trunk > {Left|Right}_Shoulder_Pitch:22 > {Left|Right}_Shoulder_Roll:5"
        " > {Left|Right}_Elbow_Pitch:14 > {Left|Right}_Elbow_Yaw:2; Trunk > Waist:12 > {Left|Right}_Hip_Pitch:11"
        " > {Left|Right}_Hip_Roll:2 > {Left|Right}_Hip_Yaw:8 > {Left|Right}_Knee_Pitch:14 > {Left|Right}_Ankle_Pitch:28"
        " > {Left|Right}_Ankle_Roll:1",
        {"hips": "Waist", "head": "Head_pitch",
         **_limbs("{Left|Right}_Hip_Yaw", "{Left|Right}_Knee_Pitch", "{Left|Right}_Ankle_Roll", "", "",
                  "{Left|Right}_Shoulder_Roll", "{Left|Right}_Elbow_Yaw", "")},
        robot=True,
    ),
    "talos": Rig(
        "base_link > torso_1_joint:8 > torso_2_joint:7 > head_1_joint:32 > head_2_joint:2;"
        "torso_2_joint > arm_{left|right}_1_joint:23 > arm_{left|right}_2_joint:14 > arm_{left|right}_3_joint:1"
        " > arm_{left|right}_4_joint:27 > arm_{left|right}_5_joint:26 > arm_{left|right}_6_joint:0"
        " > arm_{left|right}_7_joint:0 > gripper_{left|right}_joint; base_link > leg_{left|right}_1_joint:9"
        " > leg_{left|right}_2_joint:0 > leg_{left|right}_3_joint:0 > leg_{left|right}_4_joint:38"
        " > leg_{left|right}_5_joint:33 > leg_{left|right}_6_joint:0",
        {"hips": "base_link", "chest": "torso_2_joint",
         **_limbs("leg_{left|right}_3_joint", "leg_{left|right}_4_joint", "leg_{left|right}_6_joint", "", "",
                  "arm_{left|right}_3_joint", "arm_{left|right}_4_joint", "arm_{left|right}_7_joint")},
        robot=True,
    ),
    "kuavo": Rig(
        "base_link > leg_{l|r}1_joint:9 > leg_{l|r}2_joint:2 > leg_{l|r}3_joint:6 > leg_{l|r}4_joint:24"
        " > leg_{l|r}5_joint:26 > leg_{l|r}6_joint:0; base_link > zarm_{l|r}1_joint:39 > zarm_{l|r}2_joint:3"
        " > zarm_{l|r}3_joint:2 > zarm_{l|r}4_joint:26 > zarm_{l|r}5_joint:20 > zarm_{l|r}6_joint:1"
        " > zarm_{l|r}7_joint:1; base_link > zhead_1_joint:50 > zhead_2_joint:5",
        {"hips": "base_link", "neck": "zhead_1_joint", "head": "zhead_2_joint",
         **_limbs("leg_{l|r}3_joint", "leg_{l|r}4_joint", "leg_{l|r}6_joint", "", "", "zarm_{l|r}3_joint",
                  "zarm_{l|r}4_joint", "zarm_{l|r}7_joint")},
        robot=True,
    ),
    "atlas": Rig(
        "pelvis > back_bkz:1 > back_bky:16 > back_bkx:5 > neck_ry:60; back_bkx > {l|r}_arm_shz:53 > {l|r}_arm_shx:15"
        " > {l|r}_arm_ely:19 > {l|r}_arm_elx:12 > {l|r}_arm_wry:19 > {l|r}_arm_wrx:12 > {l|r}_arm_wry2:1;"
        "pelvis > {l|r}_leg_hpz:9 > {l|r}_leg_hpx:0 > {l|r}_leg_hpy:7 > {l|r}_leg_kny:38 > {l|r}_leg_aky:42"
        " > {l|r}_leg_akx:0",
        {"hips": "pelvis", "chest": "back_bkx",
         **_limbs("{l|r}_leg_hpy", "{l|r}_leg_kny", "{l|r}_leg_akx", "", "", "{l|r}_arm_shx", "{l|r}_arm_elx",
                  "{l|r}_arm_wry2")},
        robot=True,
    ),
    "hrp": Rig(
        "BODY > {L|R}LEG_HIP_R > {L|R}LEG_HIP_P:0 > {L|R}LEG_HIP_Y:5 > {L|R}LEG_KNEE:30 > {L|R}LEG_ANKLE_P:30"
        " > {L|R}LEG_ANKLE_R:0; BODY > WAIST_P > WAIST_R:5 > CHEST > {L|R}ARM_SHOULDER_P:25 > {L|R}ARM_SHOULDER_R:0"
        " > {L|R}ARM_SHOULDER_Y:0 > {L|R}ARM_ELBOW:25 > {L|R}ARM_WRIST_Y:20 > {L|R}ARM_WRIST_P:0 > {L|R}ARM_WRIST_R:0",
        {"hips": "BODY", "chest": "CHEST",
         **_limbs("{L|R}LEG_HIP_Y", "{L|R}LEG_KNEE", "{L|R}LEG_ANKLE_R", "", "", "{L|R}ARM_SHOULDER_Y",
                  "{L|R}ARM_ELBOW", "{L|R}ARM_WRIST_R")},
        robot=True,
    ),
    "icub": Rig(
        "root_link > {l|r}_hip_pitch > {l|r}_hip_roll:2 > {l|r}_hip_yaw:6 > {l|r}_knee:18 > {l|r}_ankle_pitch:21"
        " > {l|r}_ankle_roll:0; root_link > torso_pitch:2 > torso_roll:4 > torso_yaw:5 > {l|r}_shoulder_pitch:14"
        " > {l|r}_shoulder_roll:1 > {l|r}_shoulder_yaw:5 > {l|r}_elbow:10 > {l|r}_wrist_prosup:3 > {l|r}_wrist_pitch:11"
        " > {l|r}_wrist_yaw:0; torso_yaw > neck_pitch:15 > neck_roll:2 > neck_yaw:1",
        {"hips": "root_link", "chest": "torso_yaw", "neck": "neck_roll", "head": "neck_yaw",
         **_limbs("{l|r}_hip_yaw", "{l|r}_knee", "{l|r}_ankle_roll", "", "", "{l|r}_shoulder_yaw", "{l|r}_elbow",
                  "{l|r}_wrist_yaw")},
        robot=True,
    ),
}  # fmt: skip

_SIDES = re.compile(r"\{(\w+)\|(\w+)\}")
_DOWN = re.compile(r"leg|thigh|hip|femur|knee", re.IGNORECASE)
_AHEAD = re.compile(r"toe|ball", re.IGNORECASE)
_ASIDE = re.compile(r"arm|shoulder|collar|clavicle|hand|shldr|thumb|index|middle|ring|pinky|little|palm", re.IGNORECASE)


def sided(text, side):
    """Return a text with the words of one side, 0 for left and 1 for right."""
    return _SIDES.sub(lambda found: found[side + 1], text)


def skeleton_of(name):
    """Return the invented skeleton of a rig: legs down, toes ahead, arms aside, the trunk up."""
    rig = RIGS[name]
    joints: dict[str, sy.Joint] = {}
    sides: set[str] = set()  # joints of the limbs, which begin beside the middle
    for chain in filter(None, (part.strip() for part in rig.tree.split(";"))):
        for side in (0, 1) if _SIDES.search(chain) else (0,):
            above, way = None, np.array([0.0, 1.0, 0.0])
            for word in sided(chain, side).split(" > "):
                joint, _, length = word.strip().partition(":") if re.search(r":\d+$", word) else (word.strip(), "", "")
                if re.search(r":\d+$", word):
                    joint, length = re.fullmatch(r"(.*):(\d+)", word.strip()).groups()
                lateral = 1.0 if side == 0 else -1.0
                if above is not None and _SIDES.search(chain):
                    way = np.array([0.0, -1.0, 0.0] if _DOWN.search(joint) and not _ASIDE.search(joint) else way)
                    way = np.array([lateral, 0.0, 0.0]) if _ASIDE.search(joint) else way
                    way = np.array([0.0, 0.0, 1.0]) if _AHEAD.search(joint) else way
                    way = way if above in sides else np.array([0.7 * lateral, way[1], 0.0])
                if _SIDES.search(chain) and above is not None:
                    sides.add(joint)
                if joint not in joints:
                    rest = np.eye(4)
                    rest[:3, 3] = 0.01 * float(length or 10) * way
                    kind = sy.Kind.FREE if above is None else sy.Kind.HINGE if rig.robot else sy.Kind.BALL
                    axis = {"axis": (1.0, 0.0, 0.0)} if kind is sy.Kind.HINGE else {}
                    joints[joint] = sy.Joint(joint, above, kind, rest, **axis)
                above = joint
    return sy.Skeleton(joints.values(), name=name)


def roles_of(name):
    """Return the joints that have roles in a rig, by role."""
    out = {}
    for role, joint in RIGS[name].roles.items():
        for side, word in enumerate(("left", "right") if role.startswith("*") else ("",)):
            out[role.replace("*", word)] = sided(joint, side)
    return out


def nameless():
    """Return the bundled person as a bare tree: balls without names, roles, masses and limits."""
    person = sy.bundled("humanoid")
    return sy.Skeleton(
        dataclasses.replace(
            joint, name=f"j{row}", parent=int(parent) if parent >= 0 else None, role=None, limit=None, preferred=None,
            kind=sy.Kind.BALL if joint.kind is sy.Kind.HINGE else joint.kind, axis=np.zeros(3), stiffness=0.0,
            mass=0.0, com=np.zeros(3),
        )
        for row, (joint, parent) in enumerate(zip(person.joints, person.parents, strict=True))
    )  # fmt: skip

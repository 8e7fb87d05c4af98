// Drawing with WebGL 2: skinned triangles, rods and balls, a floor with a grid, one shadow. Light is mixed linearly.

const MOVED = `
  in vec3 place; in vec3 normal; in uvec4 bones; in vec4 weights; in vec3 tone; in vec2 corner;
  uniform sampler2D moves;
  mat4 bone(uint b) {
    int i = int(b);
    return transpose(mat4(texelFetch(moves, ivec2(0, i), 0), texelFetch(moves, ivec2(1, i), 0), texelFetch(moves, ivec2(2, i), 0), vec4(0, 0, 0, 1)));
  }
  mat4 moved() {
    mat4 m = weights.x * bone(bones.x);
    if (weights.y > 0.0) m += weights.y * bone(bones.y);
    if (weights.z > 0.0) m += weights.z * bone(bones.z);
    if (weights.w > 0.0) m += weights.w * bone(bones.w);
    return m;
  }`;
const SHADE = `
  uniform highp sampler2DShadow shade; uniform mat4 light; uniform float texel;
  float lit(vec3 p, float wide) {
    vec4 c = light * vec4(p, 1.0);
    vec3 s = c.xyz * 0.5 + 0.5;
    if (s.z >= 1.0 || any(lessThan(s.xy, vec2(0.0))) || any(greaterThan(s.xy, vec2(1.0)))) return 1.0;
    float sum = 0.0;
    for (int i = -2; i <= 2; i++) for (int j = -2; j <= 2; j++) sum += texture(shade, vec3(s.xy + wide * texel * vec2(i, j), s.z));
    return sum / 25.0;
  }`;
const PROGRAMS = {
  body: [`${MOVED}
  uniform mat4 view; out vec3 at; out vec3 turned; out vec3 shown; out vec2 uv;
  void main() {
    mat4 m = moved();
    at = (m * vec4(place, 1.0)).xyz; turned = mat3(m) * normal; shown = tone; uv = corner;
    gl_Position = view * vec4(at, 1.0);
  }`, `${SHADE}
  in vec3 at; in vec3 turned; in vec3 shown; in vec2 uv; out vec4 colour;
  uniform vec3 eye, key, up; uniform float ground, size, alpha; uniform bool faceted, textured; uniform sampler2D image;
  void main() {
    vec3 towards = normalize(eye - at);
    vec3 n = faceted ? cross(dFdx(at), dFdy(at)) : turned;
    n = normalize(n);
    if (faceted ? dot(n, towards) < 0.0 : !gl_FrontFacing) n = -n;
    vec3 base = pow(shown, vec3(2.2));
    if (textured) base *= pow(texture(image, uv).rgb, vec3(2.2));
    float free = lit(at + 0.004 * size * n, 1.0);
    float facing = clamp((dot(n, key) + 0.2) / 1.2, 0.0, 1.0);
    float rise = 0.5 + 0.5 * dot(n, up), height = dot(at, up) - ground;
    float sky = mix(0.72, 1.0, smoothstep(0.0, 0.14 * size, height)) * (0.82 + 0.18 * max(dot(n, towards), 0.0));
    vec3 around = mix(vec3(0.27, 0.25, 0.235), vec3(0.50, 0.53, 0.58), rise) * sky;
    float edge = pow(1.0 - max(dot(n, towards), 0.0), 3.0);
    float gloss = 0.07 * pow(max(dot(n, normalize(key + towards)), 0.0), 24.0) * free;
    vec3 mix_ = base * (around + vec3(0.98, 0.94, 0.88) * facing * (0.22 + 0.78 * free)) + gloss;
    mix_ += 0.16 * edge * clamp(0.35 + rise, 0.0, 1.0) * sky * (0.3 + 0.7 * base);
    vec3 over = 1.0 - 0.4 * exp((0.6 - mix_) / 0.4);
    mix_ = mix(mix_, over, step(0.6, mix_));
    colour = vec4(pow(mix_, vec3(1.0 / 2.2)) * alpha, alpha);
  }`],
  shadow: [`${MOVED}
  uniform mat4 view;
  void main() { gl_Position = view * moved() * vec4(place, 1.0); }`, `
  void main() {}`],
  floor: [`
  in vec2 place; uniform mat4 view; uniform vec3 middle, a, b; uniform float size; out vec3 at; out vec2 grid;
  void main() { grid = place * 5.0 * size; at = middle + grid.x * a + grid.y * b; gl_Position = view * vec4(at, 1.0); }`, `${SHADE}
  in vec3 at; in vec2 grid; out vec4 colour; uniform vec3 ink, a, b; uniform vec2 shift; uniform float size, cell;
  float line(vec2 p) { vec2 w = fwidth(p), d = abs(fract(p - 0.5) - 0.5) / max(w, vec2(1e-5)); return (1.0 - min(min(d.x, d.y) / 1.2, 1.0)) * clamp(1.0 - 2.5 * max(w.x, w.y), 0.0, 1.0); }
  void main() {
    float far = length(grid) / size, fade = 1.0 - smoothstep(0.7, 3.2, far);
    vec2 p = (grid + shift) / cell;
    float lines = max(0.16 * line(p), 0.26 * line(p / 4.0));
    float dark = 0.42 * (1.0 - lit(at, 2.6));
    float alpha = fade * (1.0 - (1.0 - lines) * (1.0 - dark));
    vec3 tone = mix(ink, vec3(0.10, 0.13, 0.19), dark / max(dark + lines, 1e-4));
    colour = vec4(tone * alpha, alpha);
  }`],
};
const PLACES = { place: 0, normal: 1, bones: 2, weights: 3, tone: 4, corner: 5 };

// 4 × 4 matrices by columns, as WebGL reads them.
function product(a, b) {
  const out = new Float32Array(16);
  for (let i = 0; i < 4; i++) for (let j = 0; j < 4; j++) for (let k = 0; k < 4; k++) out[4 * j + i] += a[4 * k + i] * b[4 * j + k];
  return out;
}
function looking(right, top, back, eye) {
  return new Float32Array([right[0], top[0], back[0], 0, right[1], top[1], back[1], 0, right[2], top[2], back[2], 0, -dot(right, eye), -dot(top, eye), -dot(back, eye), 1]);
}

function normalsOf(places, faces) {
  const out = new Float32Array(places.length);
  for (let f = 0; f < faces.length; f += 3) {
    const [i, j, k] = [3 * faces[f], 3 * faces[f + 1], 3 * faces[f + 2]];
    const ux = places[j] - places[i], uy = places[j + 1] - places[i + 1], uz = places[j + 2] - places[i + 2];
    const vx = places[k] - places[i], vy = places[k + 1] - places[i + 1], vz = places[k + 2] - places[i + 2];
    const x = uy * vz - uz * vy, y = uz * vx - ux * vz, z = ux * vy - uy * vx;
    for (const c of [i, j, k]) { out[c] += x; out[c + 1] += y; out[c + 2] += z; }
  }
  for (let i = 0; i < out.length; i += 3) {
    const n = Math.hypot(out[i], out[i + 1], out[i + 2]) || 1;
    out[i] /= n; out[i + 1] /= n; out[i + 2] /= n;
  }
  return out;
}

class Drawing {
  constructor(canvas) {
    const gl = this.gl = canvas.getContext("webgl2", { antialias: true, alpha: true, premultipliedAlpha: true });
    if (!gl) throw new Error("This page needs WebGL 2, which this browser does not offer.");
    this.canvas = canvas;
    this.programs = {};
    for (const [name, sources] of Object.entries(PROGRAMS)) this.programs[name] = this.compiled(sources);
    const square = gl.createVertexArray(), corners = gl.createBuffer();
    gl.bindVertexArray(square);
    gl.bindBuffer(gl.ARRAY_BUFFER, corners);
    gl.bufferData(gl.ARRAY_BUFFER, new Float32Array([-1, -1, 1, -1, -1, 1, 1, 1]), gl.STATIC_DRAW);
    gl.enableVertexAttribArray(0);
    gl.vertexAttribPointer(0, 2, gl.FLOAT, false, 0, 0);
    this.square = square;
    this.side = Math.min(2048, gl.getParameter(gl.MAX_TEXTURE_SIZE));
    this.depth = gl.createTexture();
    gl.bindTexture(gl.TEXTURE_2D, this.depth);
    gl.texStorage2D(gl.TEXTURE_2D, 1, gl.DEPTH_COMPONENT24, this.side, this.side);
    for (const [key, value] of [[gl.TEXTURE_MIN_FILTER, gl.LINEAR], [gl.TEXTURE_MAG_FILTER, gl.LINEAR], [gl.TEXTURE_COMPARE_MODE, gl.COMPARE_REF_TO_TEXTURE]]) gl.texParameteri(gl.TEXTURE_2D, key, value);
    this.target = gl.createFramebuffer();
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.target);
    gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.DEPTH_ATTACHMENT, gl.TEXTURE_2D, this.depth, 0);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    this.white = this.textureOf(1, 1, new Uint8Array([255, 255, 255, 255]));
  }

  compiled([vertex, fragment]) {
    const gl = this.gl, program = gl.createProgram(), head = "#version 300 es\nprecision highp float; precision highp int;\n";
    for (const [kind, text] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, head + text);
      gl.compileShader(shader);
      if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader));
      gl.attachShader(program, shader);
    }
    for (const [name, at] of Object.entries(PLACES)) gl.bindAttribLocation(program, at, name);
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(program));
    const at = {};
    for (let i = 0; i < gl.getProgramParameter(program, gl.ACTIVE_UNIFORMS); i++) {
      const { name } = gl.getActiveUniform(program, i);
      at[name] = gl.getUniformLocation(program, name);
    }
    return { program, at };
  }

  textureOf(width, height, data) {
    const gl = this.gl, texture = gl.createTexture();
    gl.bindTexture(gl.TEXTURE_2D, texture);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, width, height, 0, gl.RGBA, gl.UNSIGNED_BYTE, data);
    return texture;
  }

  imageOf(bitmap) {
    const gl = this.gl, texture = gl.createTexture();
    gl.bindTexture(gl.TEXTURE_2D, texture);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, gl.RGBA, gl.UNSIGNED_BYTE, bitmap);
    gl.generateMipmap(gl.TEXTURE_2D);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.LINEAR_MIPMAP_LINEAR);
    return texture;
  }

  // Make a mesh from arrays by attribute; `count` matrices of three rows move it.
  mesh({ place, normal, bones, weights, tone, corner, faces }, { faceted = false, image = null } = {}) {
    const gl = this.gl, vao = gl.createVertexArray();
    gl.bindVertexArray(vao);
    const put = (name, data, width, kind, whole) => {
      if (!data) { gl.vertexAttrib4f(PLACES[name], 0, 0, 0, 0); return; }
      gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
      gl.bufferData(gl.ARRAY_BUFFER, data, gl.STATIC_DRAW);
      gl.enableVertexAttribArray(PLACES[name]);
      if (whole) gl.vertexAttribIPointer(PLACES[name], width, kind, 0, 0);
      else gl.vertexAttribPointer(PLACES[name], width, kind, kind !== gl.FLOAT, 0, 0);
    };
    put("place", place, 3, gl.FLOAT);
    put("normal", normal, 3, gl.FLOAT);
    put("bones", bones, 4, gl.UNSIGNED_SHORT, true);
    put("weights", weights, 4, gl.UNSIGNED_BYTE);
    put("tone", tone, 3, gl.UNSIGNED_BYTE);
    put("corner", corner, 2, gl.FLOAT);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, gl.createBuffer());
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, faces, gl.STATIC_DRAW);
    gl.bindVertexArray(null);
    return { vao, count: faces.length, kind: faces instanceof Uint32Array ? gl.UNSIGNED_INT : gl.UNSIGNED_SHORT, faceted, image };
  }

  // Matrices (three rows of four numbers each) as a texture.
  moves(count) {
    const gl = this.gl, texture = gl.createTexture();
    gl.bindTexture(gl.TEXTURE_2D, texture);
    gl.texStorage2D(gl.TEXTURE_2D, 1, gl.RGBA32F, 3, Math.max(count, 1));
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
    return { texture, data: new Float32Array(12 * Math.max(count, 1)), count: Math.max(count, 1) };
  }

  // Draw groups {meshes, moves, alpha, shadow} for a view {matrix, eye, key, up, ...}.
  draw(groups, view) {
    const gl = this.gl;
    for (const { moves } of groups) {
      gl.bindTexture(gl.TEXTURE_2D, moves.texture);
      gl.texSubImage2D(gl.TEXTURE_2D, 0, 0, 0, 3, moves.count, gl.RGBA, gl.FLOAT, moves.data);
    }
    gl.enable(gl.DEPTH_TEST);
    gl.depthMask(true);
    gl.disable(gl.BLEND);
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.target);
    gl.viewport(0, 0, this.side, this.side);
    gl.clear(gl.DEPTH_BUFFER_BIT);
    gl.enable(gl.POLYGON_OFFSET_FILL);
    gl.polygonOffset(1.5, 2);
    const shadow = this.programs.shadow;
    gl.useProgram(shadow.program);
    gl.uniformMatrix4fv(shadow.at.view, false, view.light);
    gl.uniform1i(shadow.at.moves, 0);
    for (const group of groups) if (group.shadow) this.fill(group, null);
    gl.disable(gl.POLYGON_OFFSET_FILL);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    gl.viewport(0, 0, this.canvas.width, this.canvas.height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.activeTexture(gl.TEXTURE1);
    gl.bindTexture(gl.TEXTURE_2D, this.depth);
    gl.activeTexture(gl.TEXTURE0);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    this.floor(view);
    const body = this.programs.body;
    gl.useProgram(body.program);
    gl.uniformMatrix4fv(body.at.view, false, view.matrix);
    gl.uniformMatrix4fv(body.at.light, false, view.light);
    gl.uniform3fv(body.at.eye, view.eye);
    gl.uniform3fv(body.at.key, view.key);
    gl.uniform3fv(body.at.up, view.up);
    gl.uniform1f(body.at.ground, view.ground);
    gl.uniform1f(body.at.size, view.size);
    gl.uniform1f(body.at.texel, 1 / this.side);
    gl.uniform1i(body.at.moves, 0);
    gl.uniform1i(body.at.shade, 1);
    gl.uniform1i(body.at.image, 2);
    for (const group of groups) {
      gl.uniform1f(body.at.alpha, group.alpha);
      if (group.alpha < 1) {  // only the nearest triangle of each pixel shows
        gl.clear(gl.DEPTH_BUFFER_BIT);
        gl.colorMask(false, false, false, false);
        this.fill(group, body);
        gl.colorMask(true, true, true, true);
        gl.depthFunc(gl.LEQUAL);
        gl.enable(gl.BLEND);
      }
      this.fill(group, body);
      gl.disable(gl.BLEND);
      gl.depthFunc(gl.LESS);
    }
  }

  fill({ meshes, moves }, body) {
    const gl = this.gl;
    gl.bindTexture(gl.TEXTURE_2D, moves.texture);
    for (const mesh of meshes) {
      if (body) {
        gl.uniform1i(body.at.faceted, mesh.faceted);
        gl.uniform1i(body.at.textured, Boolean(mesh.image));
        gl.activeTexture(gl.TEXTURE2);
        gl.bindTexture(gl.TEXTURE_2D, mesh.image || this.white);
        gl.activeTexture(gl.TEXTURE0);
      }
      gl.bindVertexArray(mesh.vao);
      gl.drawElements(gl.TRIANGLES, mesh.count, mesh.kind, 0);
    }
  }

  floor(view) {
    const gl = this.gl, { program, at } = this.programs.floor;
    gl.useProgram(program);
    gl.enable(gl.BLEND);
    gl.depthMask(false);
    gl.uniformMatrix4fv(at.view, false, view.matrix);
    gl.uniformMatrix4fv(at.light, false, view.light);
    for (const name of ["middle", "a", "b", "ink"]) gl.uniform3fv(at[name], view.floor[name]);
    gl.uniform2fv(at.shift, view.floor.shift);
    gl.uniform1f(at.size, view.size);
    gl.uniform1f(at.cell, view.floor.cell);
    gl.uniform1f(at.texel, 1 / this.side);
    gl.uniform1i(at.shade, 1);
    gl.bindVertexArray(this.square);
    gl.drawArrays(gl.TRIANGLE_STRIP, 0, 4);
    gl.depthMask(true);
    gl.disable(gl.BLEND);
  }
}

// Rods, balls and tubes: a mesh whose pieces have a matrix each. A rod is 1 long, from z = 0, with radius 1 to `taper`.
class Pieces {
  constructor() { this.place = []; this.normal = []; this.bones = []; this.tone = []; this.faces = []; this.count = 0; }

  grid(rows, columns, at, colour, bone) {
    const start = this.place.length / 3;
    for (let i = 0; i <= rows; i++) for (let j = 0; j <= columns; j++) {
      const [p, n] = at(i / rows, j / columns);
      this.place.push(...p); this.normal.push(...n); this.bones.push(bone, 0, 0, 0); this.tone.push(...colour);
      if (i < rows && j < columns) {
        const k = start + i * (columns + 1) + j;
        this.faces.push(k, k + 1, k + columns + 1, k + 1, k + columns + 2, k + columns + 1);
      }
    }
  }

  rod(taper, colour) {
    this.grid(1, 20, (u, v) => {
      const c = Math.cos(2 * Math.PI * v), s = Math.sin(2 * Math.PI * v), r = 1 + (taper - 1) * u;
      return [[r * c, r * s, u], [c, s, 0]];
    }, colour, this.count);
    return this.count++;
  }

  ball(colour) {
    this.grid(14, 20, (u, v) => {
      const a = Math.PI * (u - 0.5), c = Math.cos(2 * Math.PI * v), s = Math.sin(2 * Math.PI * v);
      const n = [Math.cos(a) * c, Math.cos(a) * s, Math.sin(a)];
      return [n, n];
    }, colour, this.count);
    return this.count++;
  }

  tube(points, radius, colour) {
    const steps = points.length - 1, around = [];
    points.forEach((_, i) => {  // each ring turns as little as it can against the one before
      const along = unit(minus(points[Math.min(i + 1, steps)], points[Math.max(i - 1, 0)]));
      const before = i ? around[i - 1][0] : Math.abs(along[0]) < 0.8 ? [1, 0, 0] : [0, 1, 0];
      const side = unit(minus(before, scaled(along, dot(before, along))));
      around.push([side, cross(along, side)]);
    });
    this.grid(steps, 6, (u, v) => {
      const i = Math.round(u * steps), [side, other] = around[i];
      const n = plus(scaled(side, Math.cos(2 * Math.PI * v)), other, Math.sin(2 * Math.PI * v));
      return [plus(points[i], n, radius), n];
    }, colour, this.count);
    return this.count++;
  }

  mesh(drawing) {
    const weights = new Uint8Array(4 * this.place.length / 3);
    for (let i = 0; i < weights.length; i += 4) weights[i] = 255;
    return drawing.mesh({
      place: new Float32Array(this.place), normal: new Float32Array(this.normal), bones: new Uint16Array(this.bones),
      weights, tone: new Uint8Array(this.tone), faces: new Uint32Array(this.faces),
    });
  }
}

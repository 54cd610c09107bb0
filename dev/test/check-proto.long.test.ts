import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { appendFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { checkProto } from '../check-proto.ts'

const protoFile = 'proto/note/v1/note.proto'
const proto = (fields: string) => `syntax = "proto3";\n\npackage note.v1;\n\nmessage Note {\n  ${fields}\n}\n`
const settings = {
  'buf.yaml': 'version: v2\nmodules:\n  - path: proto\nlint:\n  use:\n    - STANDARD\nbreaking:\n  use:\n    - FILE\n',
  'buf.gen.yaml':
    'version: v2\nclean: true\nplugins:\n  - local: protoc-gen-es\n    out: proto/gen\n    opt: target=js+dts\ninputs:\n  - directory: proto\n',
}

/** Fields of the released message. */
const first = 'string text = 1;\n  string title = 2;\n  string author = 3;'

let root = ''

const write = (files: Record<string, string>) => {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
}
const generate = () => execFileSync('buf', ['generate'], { cwd: root, stdio: 'pipe' })
function release() {
  execFileSync('buf', ['build', '-o', 'proto/released.binpb'], { cwd: root, stdio: 'pipe' })
  const digest = createHash('sha256')
    .update(readFileSync(join(root, 'proto/released.binpb')))
    .digest('hex')
  write({ 'releases.json': JSON.stringify([{ version: '1.0.0', sha256: { 'protos.binpb': digest } }]) })
}

const check = () => {
  const lines: string[] = []
  const ok = checkProto(root, (line) => lines.push(line))
  return { ok, output: lines.join('\n') }
}

/** Template project with a released proto and current generated code. Each test works on a copy. */
let released = ''

beforeAll(() => {
  released = root = mkdtempSync(join(tmpdir(), 'check-proto-test-'))
  write({ ...settings, [protoFile]: proto(first) })
  generate()
  release()
})
afterAll(() => rmSync(released, { recursive: true }))

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'check-proto-test-'))
  cpSync(released, root, { recursive: true })
})
afterEach(() => rmSync(root, { recursive: true }))

describe('checkProto', () => {
  it('checkProto passes if a field was added since the release', () => {
    write({ [protoFile]: proto(`${first}\n  string place = 4;`) })
    generate()
    expect(check()).toEqual({ ok: true, output: expect.stringContaining('ok     buf breaking') })
  })

  it('checkProto fails on a field with a changed type, on a removed field and on a renamed field', () => {
    write({ [protoFile]: proto('int32 text = 1;\n  string words = 3;') })
    const { ok, output } = check()
    expect(ok).toBe(false)
    expect(output).toContain('failed buf breaking against proto/released')
    expect(output).toMatch(/Field "1" .* changed type/)
    expect(output).toMatch(/Previously present field "2" /)
    expect(output).toMatch(/Field "3" .* changed name/)
  })

  it('checkProto passes after the release of a breaking change', () => {
    write({ [protoFile]: proto('int32 text = 1;') })
    generate()
    release()
    expect(check().ok).toBe(true)
  })

  it('checkProto fails if the released protos are not those that the last release recorded', () => {
    appendFileSync(join(root, 'proto/released.binpb'), '\n')
    expect(check()).toEqual({ ok: false, output: expect.stringContaining('is not that of 1.0.0 in releases.json') })
  })

  it('checkProto fails on stale or leftover generated code', () => {
    write({ [protoFile]: proto(`${first}\n  string place = 4;`) })
    expect(check()).toEqual({ ok: false, output: expect.stringContaining('note_pb.js') })
    generate()
    write({ 'proto/gen/note/v1/old_pb.js': '' })
    expect(check()).toEqual({ ok: false, output: expect.stringContaining('Not current: note/v1/old_pb.js') })
  })

  it('checkProto fails on a lint error', () => {
    write({ [protoFile]: proto(`${first}\n  string badName = 4;`) })
    generate()
    expect(check()).toEqual({ ok: false, output: expect.stringContaining('failed buf lint') })
  })
})

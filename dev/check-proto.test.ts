import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { checkProto } from './check-proto.ts'

const protoFile = 'proto/note/v1/note.proto'
const proto = (fields: string) => `syntax = "proto3";\n\npackage note.v1;\n\nmessage Note {\n  ${fields}\n}\n`
const settings = {
  'buf.yaml': 'version: v2\nmodules:\n  - path: proto\nlint:\n  use:\n    - STANDARD\nbreaking:\n  use:\n    - FILE\n',
  'buf.gen.yaml':
    'version: v2\nclean: true\nplugins:\n  - local: protoc-gen-es\n    out: proto/gen\n    opt: target=js+dts\ninputs:\n  - directory: proto\n',
}

let root = ''

const write = (files: Record<string, string>) => {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
}
const generate = () => execFileSync('buf', ['generate'], { cwd: root, stdio: 'pipe' })
const release = () => execFileSync('buf', ['build', '-o', 'proto/released.binpb'], { cwd: root, stdio: 'pipe' })

const check = () => {
  const lines: string[] = []
  const ok = checkProto(root, (line) => lines.push(line))
  return { ok, output: lines.join('\n') }
}

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'check-proto-test-'))
  write({ ...settings, [protoFile]: proto('string text = 1;') })
  generate()
})

afterEach(() => rmSync(root, { recursive: true }))

describe('checkProto', () => {
  it('passes before the first release and skips the comparison', () => {
    expect(check()).toEqual({ ok: true, output: expect.stringContaining('nothing to compare with') })
  })

  it('passes if a field was added since the release', () => {
    release()
    write({ [protoFile]: proto('string text = 1;\n  string title = 2;') })
    generate()
    expect(check()).toEqual({ ok: true, output: expect.stringContaining('ok     buf breaking') })
  })

  it.each([
    ['a changed field type', 'int32 text = 1;'],
    ['a removed field', 'string title = 2;'],
    ['a renamed field', 'string words = 1;'],
  ])('fails on %s until the next release', (_, changed) => {
    release()
    write({ [protoFile]: proto(changed) })
    generate()
    expect(check()).toEqual({
      ok: false,
      output: expect.stringContaining('failed buf breaking against proto/released'),
    })
    release()
    expect(check().ok).toBe(true)
  })

  it('fails on stale or leftover generated code', () => {
    write({ [protoFile]: proto('string text = 1;\n  string title = 2;') })
    expect(check()).toEqual({ ok: false, output: expect.stringContaining('note_pb.js') })
    generate()
    write({ 'proto/gen/note/v1/old_pb.js': '' })
    expect(check()).toEqual({ ok: false, output: expect.stringContaining('Not current: note/v1/old_pb.js') })
  })

  it('fails on a lint error', () => {
    write({ [protoFile]: proto('string badName = 1;') })
    generate()
    expect(check()).toEqual({ ok: false, output: expect.stringContaining('failed buf lint') })
  })
})

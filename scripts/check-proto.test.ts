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
const git = (...args: string[]) =>
  execFileSync('git', ['-c', 'user.name=A Person', '-c', 'user.email=a@person.test', ...args], {
    cwd: root,
    stdio: 'pipe',
  })
const commit = () => {
  git('add', '-A')
  git('commit', '-qm', 'a change')
}
const generate = () => execFileSync('buf', ['generate'], { cwd: root, stdio: 'pipe' })

const check = () => {
  const lines: string[] = []
  const ok = checkProto(root, (line) => lines.push(line))
  return { ok, said: lines.join('\n') }
}

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'check-proto-test-'))
  write({ ...settings, [protoFile]: proto('string text = 1;') })
  generate()
  git('init', '-q')
})

afterEach(() => rmSync(root, { recursive: true }))

describe('the contract check', () => {
  it('passes a first commit, and says that there is nothing to compare it with', () => {
    commit()
    const { ok, said } = check()
    expect(ok).toBe(true)
    expect(said).toContain('nothing to compare with')
  })

  it('passes a folder that is no repository', () => {
    rmSync(join(root, '.git'), { recursive: true })
    expect(check()).toEqual({ ok: true, said: expect.stringContaining('nothing to compare with') })
  })

  it('passes a field that is added, before and after its commit', () => {
    commit()
    write({ [protoFile]: proto('string text = 1;\n  string title = 2;') })
    generate()
    expect(check()).toEqual({ ok: true, said: expect.stringContaining('against HEAD (') })
    commit()
    expect(check()).toEqual({ ok: true, said: expect.stringContaining('against HEAD~1 (') })
  })

  it('fails on a field that changes its type, before and after its commit', () => {
    commit()
    write({ [protoFile]: proto('int32 text = 1;') })
    generate()
    expect(check()).toEqual({ ok: false, said: expect.stringContaining('failed buf breaking against HEAD (') })
    commit()
    expect(check()).toEqual({ ok: false, said: expect.stringContaining('failed buf breaking against HEAD~1 (') })
  })

  it('fails on generated code that was not renewed, changed by hand or left over', () => {
    commit()
    write({ [protoFile]: proto('string text = 1;\n  string title = 2;') })
    expect(check()).toEqual({ ok: false, said: expect.stringContaining('note_pb.js') })
    generate()
    write({ 'proto/gen/note/v1/old_pb.js': '' })
    expect(check()).toEqual({ ok: false, said: expect.stringContaining('Not current: note/v1/old_pb.js') })
  })

  it('fails on a proto that the linter refuses', () => {
    commit()
    write({ [protoFile]: proto('string badName = 1;') })
    generate()
    expect(check()).toEqual({ ok: false, said: expect.stringContaining('failed buf lint') })
  })
})

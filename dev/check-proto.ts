/**
 * `npm run verify -- proto`: the generated code must be current, the protos must pass the linter, and no change
 * may break callers of the last release. Its protos, or those of the baseline, are in proto/released.binpb.
 */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { readReleases } from './releases.ts'

const generated = 'proto/gen'
const released = 'proto/released.binpb'

type Outcome = { ok: boolean; output: string }

export const checkProto = (root: string, log: (line: string) => void): boolean => {
  const checks: [string, () => Outcome][] = [
    [`${generated} is what the protos generate`, () => generatedIsCurrent(root)],
    ['buf lint', () => buf(root, ['lint'])],
    [`${released} has the protos of the last release`, () => releasedIsRecorded(root)],
    [`buf breaking against ${released}`, () => buf(root, ['breaking', '--against', released])],
  ]
  let ok = true
  for (const [name, check] of checks) {
    const outcome = check()
    log(`${outcome.ok ? 'ok    ' : 'failed'} ${name}`)
    if (!outcome.ok) log(outcome.output.trim())
    ok &&= outcome.ok
  }
  return ok
}

const generatedIsCurrent = (root: string): Outcome => {
  const out = mkdtempSync(join(tmpdir(), 'check-proto-'))
  try {
    const made = buf(root, ['generate', '--output', out])
    if (!made.ok) return made
    const [fresh, committed] = [filesIn(join(out, generated)), filesIn(join(root, generated))]
    const names = [...new Set([...fresh.keys(), ...committed.keys()])].sort()
    const stale = names.filter((name) => fresh.get(name) !== committed.get(name))
    const output = `Not current: ${stale.join(', ')}.\nRun npm run make -- proto and commit the result.`
    return { ok: stale.length === 0, output }
  } finally {
    rmSync(out, { recursive: true })
  }
}

const releasedIsRecorded = (root: string): Outcome => {
  const digest = createHash('sha256')
    .update(readFileSync(join(root, released)))
    .digest('hex')
  const last = readReleases(root).at(-1)
  const output = `${released} is not that of ${last?.version} in releases.json.`
  return { ok: !last || last.sha256['protos.binpb'] === digest, output }
}

const filesIn = (folder: string): Map<string, string> => {
  if (!existsSync(folder)) return new Map()
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  const paths = entries.map((entry) => join(entry.parentPath, entry.name))
  return new Map(paths.map((path) => [path.slice(folder.length + 1), readFileSync(path, 'utf8')]))
}

const buf = (cwd: string, args: string[]): Outcome => {
  const { status, stdout, stderr, error } = spawnSync('buf', args, { cwd, encoding: 'utf8' })
  return error ? { ok: false, output: error.message } : { ok: status === 0, output: `${stdout}${stderr}` }
}

if (import.meta.main) process.exitCode = checkProto(resolve(import.meta.dirname, '..'), console.log) ? 0 : 1

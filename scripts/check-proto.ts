/**
 * Checks the internal contract: `npm run proto:check`.
 * The generated code is current, the protos pass the linter, and nothing in them breaks the last commit's callers.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

const generated = 'proto/gen'

type Outcome = { ok: boolean; output: string }

/**
 * Runs the three checks in a project's folder, telling each by `log`.
 * @returns whether all hold
 */
export const checkProto = (root: string, log: (line: string) => void): boolean => {
  const checks: [string, () => Outcome][] = [
    [`${generated} is what the protos generate`, () => generatedIsCurrent(root)],
    ['buf lint', () => buf(root, ['lint'])],
    ...breakingCheck(root, log),
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
    const output = `Not current: ${stale.join(', ')}.\nRun npm run proto:generate and commit what it makes.`
    return { ok: stale.length === 0, output }
  } finally {
    rmSync(out, { recursive: true })
  }
}

/** Against HEAD while the protos differ from it, so that it tells before the commit; else against the one before. */
const breakingCheck = (root: string, log: (line: string) => void): [string, () => Outcome][] => {
  const changed = git(root, ['status', '--porcelain', '--', 'proto', 'buf.yaml'])
  const revision = changed.output === '' ? 'HEAD~1' : 'HEAD'
  const before = git(root, ['rev-parse', '--short', '--verify', `${revision}^{commit}`])
  const archive = git(root, ['archive', '--format=tar', revision, 'proto', 'buf.yaml'])
  if (!changed.ok || !before.ok || !archive.ok) {
    log('       buf breaking: nothing to compare with (no earlier commit is here, or it has no protos)')
    return []
  }
  const name = `buf breaking against ${revision} (${before.output.trim()})`
  return [[name, () => nothingBreaks(root, archive.stdout)]]
}

/** Through a file: buf stops reading before an archive's padding ends, which breaks a pipe. */
const nothingBreaks = (root: string, archive: Buffer): Outcome => {
  const folder = mkdtempSync(join(tmpdir(), 'check-proto-'))
  try {
    const before = join(folder, 'before.tar')
    writeFileSync(before, archive)
    return buf(root, ['breaking', '--against', before])
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const filesIn = (folder: string): Map<string, string> => {
  if (!existsSync(folder)) return new Map()
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  const paths = entries.map((entry) => join(entry.parentPath, entry.name))
  return new Map(paths.map((path) => [path.slice(folder.length + 1), readFileSync(path, 'utf8')]))
}

const run = (file: string, args: string[], cwd: string) => {
  const { status, stdout, stderr, error } = spawnSync(file, args, { cwd, maxBuffer: 64 * 1024 * 1024 })
  if (error) return { ok: false, stdout: Buffer.alloc(0), output: error.message }
  return { ok: status === 0, stdout, output: `${stdout}${stderr}` }
}

const git = (cwd: string, args: string[]) => run('git', args, cwd)
const buf = (cwd: string, args: string[]) => run('buf', args, cwd)

if (import.meta.main) process.exitCode = checkProto(resolve(import.meta.dirname, '..'), console.log) ? 0 : 1

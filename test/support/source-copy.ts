import { cp, glob, mkdtemp, readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const root = join(import.meta.dirname, '../..')
const linkedEntries = ['node_modules', '.cache']
/** Files and folders of the project that cores, gateways and workers do not need. */
const excludedEntries = ['.git', '.data', 'bench', 'browser', 'console', 'docs', 'widget', ...linkedEntries]

/** A replacement of a text in the source. The text must occur exactly once in the folder. White space may differ. */
export interface SourceChange {
  folder: string
  from: string
  to: string
}

/**
 * Applies the replacement to the file that contains the text. Returns the file's path and new source.
 *
 * @throws if the text does not occur exactly once in the folder
 */
export async function changedFile(root: string, { folder, from, to }: SourceChange) {
  const pattern = new RegExp(from.trim().split(/\s+/).map(escapeForPattern).join('\\s+'), 'g')
  const found: { path: string; source: string }[] = []
  for await (const name of glob('**/*.ts', { cwd: join(root, folder), exclude: ['**/*.test.ts'] })) {
    const path = join(root, folder, name)
    const source = await readFile(path, 'utf8')
    for (const _ of source.matchAll(pattern)) found.push({ path, source })
  }
  const [first, second] = found
  if (!first || second) throw new Error(`${folder} has the text to replace ${found.length} times, not once: ${from}`)
  return { path: first.path, source: first.source.replace(pattern, () => to) }
}

const escapeForPattern = (text: string) => text.replace(/[^\w\s]/g, '\\$&')

/** Copies the source into a temporary folder and changes it there. Returns the folder. */
export async function copyWithChanges(changes: SourceChange[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'service-copy-'))
  const copied = (await readdir(root)).filter((each) => !excludedEntries.includes(each))
  for (const each of copied) await cp(join(root, each), join(folder, each), { recursive: true })
  for (const each of linkedEntries) await symlink(join(root, each), join(folder, each))
  for (const change of changes) {
    const { path, source } = await changedFile(folder, change)
    await writeFile(path, source)
  }
  return folder
}

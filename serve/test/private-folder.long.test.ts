import { execFileSync } from 'node:child_process'
import { chmodSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { itLong } from '../../test/support/is-long.ts'
import { freePort, inheritedEnvironment, startProcess } from '../../test/support/processes.ts'
import { makePrivate } from '../private-folder.ts'

const root = join(import.meta.dirname, '../..')
let folder: string
let dataDir: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'private-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  dataDir = join(folder, 'data')
})

/** Returns the entries that the group or other users may access. Modes of links mean nothing. */
function accessible(path: string): string[] {
  const names = ['.', ...(readdirSync(path, { recursive: true }) as string[])]
  return names.filter((name) => {
    const found = lstatSync(join(path, name), { throwIfNoEntry: false })
    return found !== undefined && !found.isSymbolicLink() && (found.mode & 0o077) !== 0
  })
}

/** Opens a folder and everything in it to all users, as an earlier version or another tool may do. */
const openToAll = (path: string) => execFileSync('chmod', ['-R', 'a+rwX', path])

async function withCore(run: () => Promise<unknown>) {
  const port = await freePort()
  const core = await startProcess({
    entry: 'dev/core.ts',
    env: { DATA_DIR: dataDir, CORE_PORT: String(port), LOG_LEVEL: 'warn' },
    through: ['sh', '-c', 'umask 0; exec "$@"', 'sh'],
    readyUrl: `http://127.0.0.1:${port}/readyz`,
  })
  await run()
  await core.stop()
}

const command = (...args: string[]) =>
  execFileSync('sh', ['-c', 'umask 0; exec "$@"', 'sh', process.execPath, 'dev/backup.ts', ...args], {
    cwd: root,
    env: { ...inheritedEnvironment(), DATA_DIR: dataDir },
    encoding: 'utf8',
  })

describe('no other user can access anything in the data folder', () => {
  it('after a start in a new folder with umask 0', async () => {
    await withCore(async () => expect(accessible(dataDir)).toEqual([]))
    expect(readdirSync(dataDir, { recursive: true }).length).toBeGreaterThan(20)
  })

  itLong('after a start in a folder with open files, a backup and a restore', async () => {
    mkdirSync(dataDir)
    chmodSync(dataDir, 0o755)
    await withCore(async () => expect(accessible(dataDir)).toEqual([]))
    openToAll(dataDir)
    await withCore(async () => expect(accessible(dataDir)).toEqual([]))
    openToAll(dataDir)
    const file = join(folder, 'service.backup')
    command('backup', file)
    expect(accessible(dataDir)).toEqual([])
    rmSync(dataDir, { recursive: true })
    command('restore', file)
    expect(accessible(dataDir)).toEqual([])
    expect(readdirSync(dataDir)).toEqual(expect.arrayContaining(['mongodb', 'secrets.json']))
  })
})

it('folders that are not of the service keep their modes', () => {
  mkdirSync(join(dataDir, 'photos'), { recursive: true, mode: 0o755 })
  writeFileSync(join(dataDir, 'photos/one.jpg'), '')
  openToAll(dataDir)
  makePrivate(dataDir)
  expect(accessible(dataDir).sort()).toEqual(['photos', 'photos/one.jpg'])
})

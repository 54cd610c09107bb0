import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { readAdminConfig } from '../../admin/config.ts'
import { loadDeliveryConfig } from '../../delivery/config.ts'
import { loadConfig } from '../../gateway/config.ts'
import { readJsonFile } from '../../platform/settings/data-file.ts'
import { dataFolderSecrets, readSecrets } from '../data-folder.ts'
import { writePrivately } from '../private-folder.ts'

const root = mkdtempSync(join(tmpdir(), 'data-files-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))
let made = 0
function newFolder(name = 'data') {
  made += 1
  return join(root, String(made), name)
}

/** Who reads each file at the start. */
const readers: Record<string, Record<string, (DATA_DIR: string) => unknown>> = {
  'secrets.json': {
    'a core': dataFolderSecrets,
    'a backup': (folder) => readSecrets(join(folder, 'secrets.json')),
    'a gateway': (DATA_DIR) => {
      vi.stubEnv('DATA_DIR', DATA_DIR)
      onTestFinished(() => void vi.unstubAllEnvs())
      return loadConfig()
    },
  },
  'delivery.token': { 'a worker': (DATA_DIR) => loadDeliveryConfig({ DATA_DIR }) },
  'admin.json': { 'the administration command': (DATA_DIR) => readAdminConfig({ DATA_DIR }) },
  'demo.json': { 'the administration command': (DATA_DIR) => readAdminConfig({ DATA_DIR }) },
}
const names = ['secretKeys', 'workspaceSessionSecret', 'gatewayToken', 'coreUrl', 'serviceToken', 'gatewayUrl']
const withEach = (value: unknown) => JSON.stringify(Object.fromEntries(names.map((name) => [name, value])))

/** A content, or what has the place of the file. */
const damages: Record<string, string | Buffer | ((path: string) => void)> = {
  'is empty': '',
  'has only a line end': '\n',
  'ends early': '{"secretKeys":"k1:PRIVATE ',
  'has NUL bytes': '\0\0\0\0',
  'has bytes that are no text': Buffer.from([0xff, 0xfe, 0, 200]),
  'begins with a byte order mark': `\ufeff${withEach('PRIVATE')}`,
  'has null': 'null\n\n"PRIVATE"',
  'has numbers': withEach(5),
  'has lists': withEach(['PRIVATE ']),
  'has line ends in its values': withEach('PRIVATE\nx'),
  'has other texts': withEach('PRIVATE value'),
  'is a folder': (path) => mkdirSync(path),
  'is a link to itself': (path) => symlinkSync(path, path),
  'is a link to nothing': (path) => symlinkSync(`${path}.away`, path),
}

describe.each(Object.entries(readers).flatMap(([file, parts]) => Object.keys(parts).map((part) => ({ file, part }))))(
  '$part stops with one line with the file and the remedy',
  ({ file, part }) => {
    it.each(Object.keys(damages))(`if ${file} %s`, async (name) => {
      const folder = newFolder()
      mkdirSync(folder, { recursive: true, mode: 0o700 })
      const damage = damages[name]!
      if (typeof damage === 'function') damage(join(folder, file))
      else writeFileSync(join(folder, file), damage, { mode: 0o600 })
      const error = await Promise.resolve(folder)
        .then(readers[file]![part]!)
        .then(
          () => undefined,
          (reason: Error) => reason,
        )
      expect(error).toMatchObject({ name: 'SettingError', message: expect.stringContaining(file) })
      expect(error!.message).toMatch(/: (restore it from a backup|delete it|let it be a file)[^\n]*$/)
      expect(error!.message).not.toContain('PRIVATE')
    })
  },
)

it('a file that another process writes and removes at any moment is read or missing, and never an error', async () => {
  const folder = newFolder()
  mkdirSync(folder, { recursive: true })
  const path = join(folder, 'demo.json')
  const content = withEach('x')
  const code = `const { renameSync, rmSync, writeFileSync } = require('node:fs')
    const { path, content } = require('node:worker_threads').workerData
    for (let turn = 0; turn < 5_000; turn += 1) {
      writeFileSync(path + '.draft', content)
      renameSync(path + '.draft', path)
      rmSync(path)
    }`
  let isWriting = true
  new Worker(code, { eval: true, workerData: { path, content } }).once('exit', () => (isWriting = false))
  const found = new Set<string>()
  while (isWriting) {
    for (let read = 0; read < 100; read += 1) found.add(JSON.stringify(readJsonFile(path, '') ?? 'missing'))
    await new Promise(setImmediate)
  }
  expect([...found].filter((each) => each !== '"missing"' && each !== content)).toEqual([])
})

it('a file that cannot be replaced is named, and leaves no draft', async () => {
  const folder = newFolder()
  mkdirSync(join(folder, 'agent.curl', 'kept'), { recursive: true })
  await expect(writePrivately(join(folder, 'agent.curl'), 'PRIVATE')).rejects.toThrow(
    /agent\.curl in DATA_DIR cannot be replaced \(EISDIR\): remove it/,
  )
  expect(readdirSync(folder)).toEqual(['agent.curl'])
})

it.each(['100 %', '%2F%00', 'with space', 'Zürich 東京 🏠', "it's $HOME & more", '#a?b'])(
  'a data folder %j has secrets, which a second start finds',
  async (name) => {
    const folder = newFolder(name)
    const first = await dataFolderSecrets(folder)
    expect(await dataFolderSecrets(folder)).toEqual(first)
    expect(readdirSync(folder)).toEqual(['secrets.json'])
  },
)

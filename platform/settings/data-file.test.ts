import { once } from 'node:events'
import { mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { expect, it, onTestFinished } from 'vitest'
import { readJsonFile } from './data-file.ts'

async function folder() {
  const path = await mkdtemp(join(tmpdir(), 'service-data-file-'))
  onTestFinished(() => rm(path, { recursive: true }))
  return path
}

it('a file that another process writes and removes meanwhile is there or not, and never unreadable', async () => {
  const path = join(await folder(), 'demo.json')
  const writer = new Worker(
    `const { renameSync, rmSync, writeFileSync } = require('node:fs')
    const { workerData: path } = require('node:worker_threads')
    for (let turn = 0; turn < 5_000; turn += 1) {
      writeFileSync(path + '.draft', '{"a":"b"}')
      renameSync(path + '.draft', path)
      rmSync(path)
    }`,
    { eval: true, workerData: path },
  )
  let isWriting = true
  const ended = once(writer, 'exit').then(() => (isWriting = false))
  const found = new Set<string>()
  while (isWriting) {
    for (let read = 0; read < 100; read += 1) found.add(JSON.stringify(readJsonFile(path, '') ?? null))
    await new Promise(setImmediate)
  }
  await ended
  expect([...found].filter((each) => each !== 'null' && each !== '{"a":"b"}')).toEqual([])
})

it('a link to a missing file is an error', async () => {
  const path = join(await folder(), 'demo.json')
  await symlink(`${path}.missing`, path)
  expect(() => readJsonFile(path, '')).toThrow('cannot be read (ENOENT)')
})

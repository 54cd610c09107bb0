import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { MongoClient } from 'mongodb'
import { afterAll, describe, expect, it } from 'vitest'
import { itLong } from './is-long.ts'
import { freePort, startProcess } from './processes.ts'
import { testDatabase } from './test-database.ts'

const folder = mkdtempSync(join(tmpdir(), 'processes-test-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** Writes a program and returns its path from the project root. */
const program = (name: string, source: string) => {
  writeFileSync(join(folder, name), source)
  return relative(join(import.meta.dirname, '../..'), join(folder, name))
}

const server = program(
  'server.mjs',
  `import { createServer } from 'node:http'
   let asked = 0
   createServer((_, res) => { res.statusCode = asked++ < 3 ? 503 : 200; res.end() }).listen(Number(process.env.PORT))
   console.log(JSON.stringify(process.env))
   process.on('SIGTERM', () => { console.log('stopping'); process.exit(7) })`,
)

describe('startProcess', () => {
  it('startProcess resolves when the process is ready; stop() ends the process with SIGTERM', async () => {
    const port = await freePort()
    const running = await startProcess({
      entry: server,
      name: 'server',
      env: { PORT: String(port) },
      readyUrl: `http://127.0.0.1:${port}/readyz`,
    })
    expect((await fetch(`http://127.0.0.1:${port}/`)).status).toBe(200)
    await running.stop()
    expect(await running.exited).toEqual({ code: 7, signal: null })
    expect(running.output()).toContain('stopping')
    expect(running.output()).not.toMatch(/VITEST|NODE_ENV|MONGODB_URI/)
  })

  it('startProcess rejects with the output if the process ends before it is ready', async () => {
    const entry = program('broken.mjs', `console.error('no such setting'); process.exit(3)`)
    const start = startProcess({ entry, name: 'broken', readyUrl: `http://127.0.0.1:${await freePort()}/` })
    await expect(start).rejects.toThrow(/broken ended \(code 3\)[\s\S]*no such setting/)
  })

  itLong('startProcess ends the process when its parent is killed', async () => {
    const guard = join(import.meta.dirname, 'end-with-parent.ts')
    const idle = program('idle.mjs', `console.log('pid ' + process.pid); setInterval(() => {}, 1000)`)
    const parent = program(
      'parent.mjs',
      `import { spawn } from 'node:child_process'
       spawn(process.execPath, ['--import', ${JSON.stringify(guard)}, ${JSON.stringify(idle)}], { stdio: ['pipe', 'inherit', 'inherit'] })`,
    )
    const running = await startProcess({ entry: parent, name: 'parent' })
    const pid = () => Number(/pid (\d+)/.exec(running.output())?.[1])
    await expect.poll(pid, { timeout: 10_000 }).toBeGreaterThan(0)
    running.kill('SIGKILL')
    await expect
      .poll(
        () => {
          try {
            return process.kill(pid(), 0)
          } catch {
            return false
          }
        },
        { timeout: 10_000 },
      )
      .toBe(false)
  })
})

describe('test databases', () => {
  const database = testDatabase()

  it('a test database is empty and writable', async () => {
    const client = new MongoClient(database.uri)
    const notes = client.db(database.name).collection('notes')
    expect(await notes.countDocuments()).toBe(0)
    await notes.insertOne({ text: 'kept' })
    await client.close()
  })

  it('a test database has a name that is short enough for MongoDB', () => {
    expect(Buffer.byteLength(database.name)).toBeLessThan(40)
  })
})

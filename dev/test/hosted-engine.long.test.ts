import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { isAlive } from '../../test/support/proc.ts'
import { enginePlace } from '../engine/engine-place.ts'
import { nodeForEngine } from '../engine/glibc.ts'
import { hostEngine } from '../engine/hosted-engine.ts'

const silent = pino({ level: 'silent' })
let dataDir = ''

beforeEach(() => {
  dataDir = mkdtempSync(join(realpathSync(tmpdir()), 'engine-test-'))
})
afterEach(() => rmSync(dataDir, { recursive: true, force: true }))

describe('a hosted engine', () => {
  it('closes cleanly on SIGTERM', async () => {
    const hosted = await hostEngine({
      place: enginePlace(dataDir),
      command: await nodeForEngine({ logger: silent, signal: AbortSignal.timeout(60_000) }),
      logger: silent,
      signal: AbortSignal.timeout(60_000),
    })
    process.kill(hosted.pid ?? 0, 'SIGTERM')
    expect(await hosted.ended).toBe('code 0')
    expect(existsSync(enginePlace(dataDir).socketPath)).toBe(false)
  })

  it('is ended if its start takes too long; the error has what it wrote', async () => {
    const pidFile = join(dataDir, 'pid')
    const silentEngine = ['-c', `echo $$ > '${pidFile}'; echo 'no space left' >&2; exec sleep 1000`]
    const starting = hostEngine({
      place: enginePlace(dataDir),
      command: { file: 'sh', args: silentEngine },
      logger: silent,
      signal: AbortSignal.timeout(60_000),
      readyWithinMs: 3_000,
    })
    await expect(starting).rejects.toMatchObject({
      reason: 'failed',
      message: expect.stringMatching(/not ready within 3 s; it wrote: no space left/),
    })
    expect(isAlive(Number(readFileSync(pidFile, 'utf8')))).toBe(false)
  })

  it('that ended has the output that it wrote last', async () => {
    const dying = "process.send({ type: 'ready' }); process.stderr.write('first words'.repeat(1000) + 'last words')"
    const hosted = await hostEngine({
      place: enginePlace(dataDir),
      command: { file: process.execPath, args: ['-e', `${dying}; setTimeout(() => process.abort(), 100)`, '--'] },
      logger: silent,
      signal: AbortSignal.timeout(60_000),
    })
    expect(await hosted.ended).toBe('signal SIGABRT')
    expect(hosted.lastOutput()).toMatch(/first wordslast words/)
    expect(hosted.lastOutput().length).toBeLessThan(10_000)
  })
})

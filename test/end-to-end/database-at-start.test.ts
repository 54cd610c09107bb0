import { describe, expect, it } from 'vitest'
import { attachEngine } from '../../dev/engine/engine.ts'
import { useStartingCores } from './starting-cores.ts'

const { newFolder, newEngine, startCore, expectWaiting, untilReady, logger } = useStartingCores()

// database-at-start.long.test.ts tests databases that are suspended, answer slowly or reset
// connections.
describe('a core that starts', () => {
  it('becomes ready when its database starts later', async () => {
    const engineDir = await newFolder()
    const { uri, stop } = await attachEngine({ dataDir: engineDir, logger })
    await stop()
    const core = await startCore(uri)
    await expectWaiting(core)
    await newEngine(engineDir)
    await untilReady(core)
  })

  it('stops immediately on SIGTERM while it waits for its database', async () => {
    const core = await startCore('mongodb://127.0.0.1:1/?directConnection=true')
    await expectWaiting(core)
    core.process.kill('SIGTERM')
    expect(await core.process.exited).toMatchObject({ code: 0 })
    expect(core.process.output()).toContain('core stopped')
  })

  it('exits with an error if the database stays unreachable', async () => {
    const core = await startCore('mongodb://127.0.0.1:1/?directConnection=true', { MONGODB_START_TIMEOUT_MS: '3000' })
    expect(await core.process.exited).toMatchObject({ code: 1 })
    expect(core.process.output()).toMatch(/core: the database could not be reached within 3 s: /)
  })
})

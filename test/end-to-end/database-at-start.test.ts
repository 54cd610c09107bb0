import { describe, it } from 'vitest'
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
})

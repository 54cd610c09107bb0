/**
 * A process that stays attached to the engine of a data folder: `node engine-holder.ts <dataDir>`.
 * Logs to standard output. Detaches when its standard input closes.
 */
import { pino } from 'pino'
import { attachEngine } from '../../core/database/embedded/engine.ts'

const logger = pino(pino.destination({ sync: true }))
const engine = await attachEngine({ dataDir: process.argv[2] ?? '', logger })
logger.info({ uri: engine.uri }, 'attached')
process.stdin.on('end', () => void engine.stop())
process.stdin.resume()

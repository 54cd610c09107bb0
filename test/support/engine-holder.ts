/**
 * A process that keeps the database engine of a data folder running: `node engine-holder.ts
 * <dataDir>`. It logs to standard output and exits when its standard input closes.
 */
import { pino } from 'pino'
import { attachEngine } from '../../dev/engine/engine.ts'

const logger = pino(pino.destination({ sync: true }))
const engine = await attachEngine({ dataDir: process.argv[2] ?? '', logger })
logger.info({ uri: engine.uri }, 'attached to the database engine')
process.stdin.on('end', () => void engine.stop())
process.stdin.resume()

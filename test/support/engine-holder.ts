/**
 * A process that holds on to a data folder's engine until it is told to leave:
 * `node engine-holder.ts <dataDir>`, with its log on standard output. It leaves when its standard input ends.
 */
import { pino } from 'pino'
import { attachEngine } from '../../core/database/embedded/engine.ts'

const logger = pino(pino.destination({ sync: true }))
const engine = await attachEngine({ dataDir: process.argv[2] ?? '', logger })
logger.info({ uri: engine.uri }, 'attached')
process.stdin.on('end', () => void engine.stop())
process.stdin.resume()

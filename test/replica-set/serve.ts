/**
 * A process that simulates a replica set before an engine: `node serve.ts <engineUri>`. Prints its URI.
 * Ends when its standard input closes.
 */
import { startReplicaSet } from './replica-set.ts'

const { uri } = await startReplicaSet(process.argv[2] ?? '')
console.log(uri)
process.stdin.on('end', () => process.exit(0))
process.stdin.resume()

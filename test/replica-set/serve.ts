/**
 * A process that simulates a replica set or the routers of a sharded cluster before an engine:
 * `node serve.ts <engineUri> set|sharded`. Prints its URI. Ends when its standard input closes.
 */
import { shardKeys } from './open-double.ts'
import { startReplicaSet } from './replica-set.ts'

const [engineUri = '', kind] = process.argv.slice(2)
const { uri } = await startReplicaSet(engineUri, { kind: kind === 'sharded' ? kind : 'set', plan: shardKeys })
console.log(uri)
process.stdin.on('end', () => process.exit(0))
process.stdin.resume()

import { type Document, MongoClient } from 'mongodb'

/** What queries cost the database. */
export interface Cost {
  /** Number of commands sent to the database. */
  calls: number
  keys: number
  documents: number
}

/** Opens a client that records its commands, and measures what its queries cost. */
export async function openMeasuredClient(uri: string, name: string) {
  let commands: Document[] = []
  const client = await new MongoClient(uri, { monitorCommands: true, ignoreUndefined: true }).connect()
  client.on('commandStarted', ({ command }) => commands.push(command))
  const db = client.db(name)
  return {
    db,
    close: () => client.close(),
    /** Runs the calls and returns the commands that they sent. */
    async commandsOf<T>(run: () => Promise<T>): Promise<{ answer: T; sent: Document[] }> {
      commands = []
      const answer = await run()
      return { answer, sent: commands }
    },
    /** Adds the cost of these commands. Runs `explain` on each query. */
    async add(cost: Cost, sent: Document[]): Promise<void> {
      cost.calls += sent.length
      for (const command of sent.filter(({ find, distinct, aggregate }) => find ?? distinct ?? aggregate)) {
        addExplained(
          cost,
          await db.command({ explain: plain(command), verbosity: 'executionStats' }, { ignoreUndefined: true }),
        )
      }
    },
  }
}

const plain = (command: Document): Document =>
  Object.fromEntries(Object.entries(command).filter(([name]) => !/^(\$.*|lsid|txnNumber)$/.test(name)))

/** Adds the examined keys and documents of an explain output to the cost. */
function addExplained(cost: Cost, explained: unknown) {
  if (typeof explained !== 'object' || explained === null) return
  if ('totalKeysExamined' in explained && 'totalDocsExamined' in explained) {
    cost.keys += Number(explained.totalKeysExamined)
    cost.documents += Number(explained.totalDocsExamined)
    return
  }
  for (const [name, inner] of Object.entries(explained)) if (name !== 'command') addExplained(cost, inner)
}

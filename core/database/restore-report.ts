import type { Db, Document, Filter } from 'mongodb'
import undoneKinds from './restore-report.json' with { type: 'json' }

/** What a restore undoes, and what the operators do about it. */
interface UndoneKind {
  title: string
  collection: string
  filter?: Filter<Document>
  /**
   * Documents to list. `gone`: only the replaced data has them. `back`: only the backup has them. Otherwise a name
   * of `comparisons`, or a field whose value has changed.
   */
  differs: string
  advice: string
  /** Field that is listed instead of ids. `none` lists nothing, because the ids are hashes. */
  listedBy?: string
}

const kinds: UndoneKind[] = undoneKinds
const isFinal = ({ status }: Document) => ['accepted', 'failed', 'dead_lettered'].includes(status)
const comparisons: Record<string, (replaced: Document, restored: Document) => boolean> = {
  revived: (replaced, restored) => replaced.status !== 'active' && restored.status === 'active',
  reopened: (replaced, restored) => isFinal(replaced) && !isFinal(restored),
}

/** A list that must be worked through is complete up to this length. */
const maxListed = 1_000
const always = `Not known here, whether or not there was data to compare:

- what happened outside of the database: service tokens and workspace sessions that were issued, settings, keys in \`SECRET_KEYS\`;
- sessions that visitors renewed after the backup: they may have to start a new chat;
- what a newer backup or another copy of the data has.`

/** Writes the report of a restore. `replaced` is the data before the restore, if it can be read. */
export async function reportOf(facts: { file: string; at: Date; restored: Db; replaced?: Db }): Promise<string> {
  const { file, at, restored, replaced } = facts
  const parts = replaced
    ? await Promise.all(kinds.map((kind) => partOf(kind, replaced, restored)))
    : kinds.map(
        ({ title, advice }) => `## ${title}\n\nUnknown, because there was no readable data to compare. ${advice}`,
      )
  const found = parts.filter((part) => part !== '')
  const head = `# Restore of ${at.toISOString()}\n\nBackup: ${file}\n`
  const summary = replaced ? 'Compared with the data that the restore replaced.' : 'There was no data to compare.'
  return `${[head + summary, ...found, always].join('\n\n')}\n`
}

async function partOf(kind: UndoneKind, replaced: Db, restored: Db) {
  const { title, differs, advice, listedBy } = kind
  const isDifferent =
    comparisons[differs] ??
    ((one: Document, other: Document) => JSON.stringify(one[differs]) !== JSON.stringify(other[differs]))
  const [before, after] = await Promise.all([read(replaced, kind), read(restored, { ...kind, listedBy: 'none' })])
  const ids =
    differs === 'back'
      ? [...after.keys()].filter((id) => !before.has(id))
      : [...before].flatMap(([id, document]) => {
          const other = after.get(id)
          if (differs === 'gone') return other ? [] : [id]
          return other && isDifferent(document, other) ? [id] : []
        })
  if (ids.length === 0) return ''
  const names =
    listedBy === undefined ? ids : listedBy === 'none' ? [] : countsOf(ids.map((id) => before.get(id)?.[listedBy]))
  const listed = names.slice(0, maxListed).map((name) => `- ${name}`)
  if (names.length > maxListed) listed.push(`- and ${names.length - maxListed} more`)
  return [`## ${title}: ${ids.length}`, advice, listed.join('\n')].filter(Boolean).join('\n\n')
}

const countsOf = (names: string[]) =>
  [...Map.groupBy(names, (name) => name)].map(([name, all]) => `${name}: ${all.length}`)

async function read(db: Db, { collection, filter = {}, differs, listedBy = 'none' }: UndoneKind) {
  const projection = Object.fromEntries(['_id', 'status', listedBy, differs].map((name) => [name, 1]))
  const documents = new Map<string, Document>()
  for await (const document of db.collection(collection).find(filter, { projection }))
    documents.set(String(document._id), document)
  return documents
}

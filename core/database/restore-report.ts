import type { Db, Document, Filter } from 'mongodb'

/** What a restore undoes. */
interface UndoneKind {
  title: string
  collection: string
  filter?: Filter<Document>
  /** `gone`: only the replaced data has the document. `back`: only the backup has it. */
  differs: 'gone' | 'back' | ((replaced: Document, restored: Document) => boolean)
  advice: string
  /** Field that is listed instead of ids. `none` lists nothing. */
  listedBy?: 'conversationId' | 'none'
}

const isFinal = ({ status }: Document) => ['accepted', 'failed', 'dead_lettered'].includes(status)
const changed = (field: string) => (replaced: Document, restored: Document) =>
  JSON.stringify(replaced[field]) !== JSON.stringify(restored[field])
const again = 'Repeat what must hold.'

const kinds: UndoneKind[] = [
  {
    title: 'Bans that are lifted',
    collection: 'visitors',
    filter: { bannedAt: { $exists: true } },
    differs: 'gone',
    advice: 'Ban them again.',
  },
  {
    title: 'Bans that are back',
    collection: 'visitors',
    filter: { bannedAt: { $exists: true } },
    differs: 'back',
    advice: 'Lift them again.',
  },
  { title: 'Bans of addresses that are lifted', collection: 'networkBans', differs: 'gone', advice: 'Ban them again.' },
  {
    title: 'Sessions of visitors that had ended (revoked, banned, closed) and are live again',
    collection: 'sessions',
    differs: (replaced, restored) => replaced.status !== 'active' && restored.status === 'active',
    advice: 'Revoke those that must not be used. A visitor who had signed out is signed in again.',
  },
  {
    title: 'Consent decisions that are undone',
    collection: 'sessions',
    differs: changed('consents'),
    advice: 'Raise the version of the consent policy, so that every visitor is asked again.',
  },
  { title: 'Suppressions that are lost', collection: 'suppressions', differs: 'gone', advice: 'Import them again.' },
  { title: 'Suppressions that are back', collection: 'suppressions', differs: 'back', advice: 'Remove them again.' },
  {
    title: 'Console sessions that had been signed out and are signed in again',
    collection: 'consoleSessions',
    differs: 'back',
    advice: 'They end at the latest 12 hours after their sign-in.',
  },
  {
    title: 'Erasures that are undone: the data of these people is back',
    collection: 'erasures',
    differs: 'gone',
    advice: 'Erase them again.',
  },
  { title: 'Deletions that are undone', collection: 'removals', differs: 'gone', advice: again },
  {
    title: 'Identity secrets that are as before their rotation',
    collection: 'installations',
    differs: changed('identitySecrets'),
    advice: 'Rotate them again. The host backend may sign with a secret that is unknown now.',
  },
  {
    title: 'Signing secrets that are as before their rotation',
    collection: 'leadSubscriptions',
    differs: changed('secrets'),
    advice: 'Rotate them again. The receiver may know only the newer secret.',
  },
  { title: 'Connections with an earlier status', collection: 'connections', differs: changed('status'), advice: again },
  { title: 'Changes by operators that are undone', collection: 'policyChanges', differs: 'gone', advice: again },
  {
    title: 'Deliveries that had ended and are sent again under the same ids',
    collection: 'deliveries',
    differs: (replaced, restored) => isFinal(replaced) && !isFinal(restored),
    advice: 'Receivers that deduplicate by delivery id accept them once.',
  },
  {
    title: 'Deliveries that are gone',
    collection: 'deliveries',
    differs: 'gone',
    advice: 'What was sent stays sent. A repeated request makes a new delivery with another id.',
  },
  { title: 'Leads that are gone', collection: 'leads', differs: 'gone', advice: 'Receivers may have them.' },
  {
    title: 'Idempotency records that are gone',
    collection: 'idempotency',
    differs: 'gone',
    advice: 'A client that repeats one of these requests makes it anew.',
    // Their ids are hashes.
    listedBy: 'none',
  },
  {
    title: 'Sessions of visitors that are gone',
    collection: 'sessions',
    differs: 'gone',
    advice: 'These visitors start a new chat.',
  },
  {
    title: 'Conversations that are gone',
    collection: 'conversations',
    differs: 'gone',
    advice: 'Nothing can bring them back but the replaced data.',
  },
  {
    title: 'Messages and other events that are gone',
    collection: 'events',
    differs: 'gone',
    advice: 'Visitors and operators read the history again. The numbers are by conversation.',
    listedBy: 'conversationId',
  },
]

const maxListed = 1_000
const always = `Not known here, whether or not there was data to compare:

- what happened outside of the database: service tokens and workspace sessions that were issued, settings, keys in \`SECRET_KEYS\`;
- sessions that visitors renewed after the backup: they may have to start a new chat;
- what a newer backup or another copy of the data has.`

/** `replaced` is the data before the restore, if it can be read. */
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

async function partOf(
  { title, collection, filter, differs, advice, listedBy }: UndoneKind,
  replaced: Db,
  restored: Db,
) {
  const [before, after] = await Promise.all([
    read(replaced, { collection, filter, differs, listedBy }),
    read(restored, { collection, filter, differs }),
  ])
  const ids =
    differs === 'back'
      ? [...after.keys()].filter((id) => !before.has(id))
      : [...before].flatMap(([id, document]) => {
          const other = after.get(id)
          if (differs === 'gone') return other ? [] : [id]
          return other && differs(document, other) ? [id] : []
        })
  if (ids.length === 0) return ''
  const names =
    listedBy === undefined ? ids : listedBy === 'none' ? [] : countsOf(ids.map((id) => before.get(id)?.[listedBy]))
  const listed = names.slice(0, maxListed).map((name) => `- ${name}`)
  if (names.length > maxListed) listed.push(`- and ${names.length - maxListed} more`)
  return [`## ${title}: ${ids.length}`, advice, ...(listed.length > 0 ? [listed.join('\n')] : [])].join('\n\n')
}

function countsOf(names: string[]) {
  const counts = new Map<string, number>()
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1)
  return [...counts].map(([name, count]) => `${name}: ${count}`)
}

type Query = Pick<UndoneKind, 'collection' | 'filter' | 'differs' | 'listedBy'>

async function read(db: Db, { collection, filter = {}, differs, listedBy }: Query) {
  const compared = typeof differs === 'string' ? [] : ['status', 'consents', 'identitySecrets', 'secrets']
  const fields = ['_id', ...compared, ...(listedBy && listedBy !== 'none' ? [listedBy] : [])]
  const projection = Object.fromEntries(fields.map((name) => [name, 1]))
  const documents = new Map<string, Document>()
  for await (const document of db.collection(collection).find(filter, { projection }))
    documents.set(String(document._id), document)
  return documents
}

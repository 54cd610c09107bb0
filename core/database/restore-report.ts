import type { Db, Document, Filter } from 'mongodb'

/**
 * What a restore undoes. `gone`: only the replaced data has the document. `back`: only the backup has it.
 * `listedBy` is listed instead of ids; `none` lists nothing.
 */
const kind = (
  collection: string,
  differs: 'gone' | 'back' | ((replaced: Document, restored: Document) => boolean),
  title: string,
  advice: string,
  more: { filter?: Filter<Document>; listedBy?: 'conversationId' | 'none' } = {},
) => ({ collection, differs, title, advice, ...more })

type UndoneKind = ReturnType<typeof kind>

const isFinal = ({ status }: Document) => ['accepted', 'failed', 'dead_lettered'].includes(status)
const changed = (field: string) => (replaced: Document, restored: Document) =>
  JSON.stringify(replaced[field]) !== JSON.stringify(restored[field])
const revived = (replaced: Document, restored: Document) => replaced.status !== 'active' && restored.status === 'active'
const reopened = (replaced: Document, restored: Document) => isFinal(replaced) && !isFinal(restored)
const banned = { filter: { bannedAt: { $exists: true } } }
const again = 'Repeat what must hold.'

const kinds = [
  kind('visitors', 'gone', 'Bans that are lifted', 'Ban them again.', banned),
  kind('visitors', 'back', 'Bans that are back', 'Lift them again.', banned),
  kind('networkBans', 'gone', 'Bans of addresses that are lifted', 'Ban them again.'),
  kind(
    'sessions',
    revived,
    'Sessions of visitors that had ended (revoked, banned, closed) and are live again',
    'Revoke those that must not be used. A visitor who had signed out is signed in again.',
  ),
  kind(
    'sessions',
    changed('consents'),
    'Consent decisions that are undone',
    'Raise the version of the consent policy, so that every visitor is asked again.',
  ),
  kind('suppressions', 'gone', 'Suppressions that are lost', 'Import them again.'),
  kind('suppressions', 'back', 'Suppressions that are back', 'Remove them again.'),
  kind(
    'consoleSessions',
    'back',
    'Console sessions that had been signed out and are signed in again',
    'They end at the latest 12 hours after their sign-in.',
  ),
  kind('erasures', 'gone', 'Erasures that are undone: the data of these people is back', 'Erase them again.'),
  kind('removals', 'gone', 'Deletions that are undone', again),
  kind(
    'installations',
    changed('identitySecrets'),
    'Identity secrets that are as before their rotation',
    'Rotate them again. The host backend may sign with a secret that is unknown now.',
  ),
  kind(
    'leadSubscriptions',
    changed('secrets'),
    'Signing secrets that are as before their rotation',
    'Rotate them again. The receiver may know only the newer secret.',
  ),
  kind('connections', changed('status'), 'Connections with an earlier status', again),
  kind('policyChanges', 'gone', 'Changes by operators that are undone', again),
  kind(
    'deliveries',
    reopened,
    'Deliveries that had ended and are sent again under the same ids',
    'Receivers that deduplicate by delivery id accept them once.',
  ),
  kind(
    'deliveries',
    'gone',
    'Deliveries that are gone',
    'What was sent stays sent. A repeated request makes a new delivery with another id.',
  ),
  kind('leads', 'gone', 'Leads that are gone', 'Receivers may have them.'),
  // Their ids are hashes.
  kind(
    'idempotency',
    'gone',
    'Idempotency records that are gone',
    'A client that repeats one of these requests makes it anew.',
    { listedBy: 'none' },
  ),
  kind('sessions', 'gone', 'Sessions of visitors that are gone', 'These visitors start a new chat.'),
  kind('conversations', 'gone', 'Conversations that are gone', 'Nothing can bring them back but the replaced data.'),
  kind(
    'events',
    'gone',
    'Messages and other events that are gone',
    'Visitors and operators read the history again. The numbers are by conversation.',
    { listedBy: 'conversationId' },
  ),
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

async function partOf(kind: UndoneKind, replaced: Db, restored: Db) {
  const { title, differs, advice, listedBy } = kind
  const [before, after] = await Promise.all([read(replaced, kind), read(restored, { ...kind, listedBy: 'none' })])
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
  return [`## ${title}: ${ids.length}`, advice, listed.join('\n')].filter(Boolean).join('\n\n')
}

const countsOf = (names: string[]) =>
  [...Map.groupBy(names, (name) => name)].map(([name, all]) => `${name}: ${all.length}`)

async function read(db: Db, { collection, filter = {}, differs, listedBy = 'none' }: UndoneKind) {
  const compared = typeof differs === 'string' ? [] : ['status', 'consents', 'identitySecrets', 'secrets']
  const projection = Object.fromEntries(['_id', listedBy, ...compared].map((name) => [name, 1]))
  const documents = new Map<string, Document>()
  for await (const document of db.collection(collection).find(filter, { projection }))
    documents.set(String(document._id), document)
  return documents
}

import type { Core } from '../core.ts'
import { notErasing } from '../mongodb/not-erasing.ts'
import { normalEmail } from './contacts.ts'
import { type Lead, toLead } from './model.ts'

const maxLeads = 500

type Contact = NonNullable<ReturnType<typeof contactOf>>

/** Newest first, after the given one. */
export async function leadsOfConversations(
  { db }: Core,
  conversationIds: string[],
  limit: number,
  after?: Lead,
): Promise<Lead[]> {
  const { createdAt, leadId } = after ?? {}
  const older = after && [{ createdAt: { $lt: createdAt } }, { createdAt, _id: { $lt: leadId } }]
  const found = db.leads.find({ conversationId: { $in: conversationIds }, ...notErasing, $or: older })
  return (await found.sort({ createdAt: -1, _id: -1 }).limit(limit).toArray()).map(toLead)
}

/** Finds the contact of each conversation: its latest lead that has a name or an e-mail address. */
export async function contactsOf(core: Core, conversationIds: string[]): Promise<Map<string, Contact>> {
  const contacts = new Map<string, Contact>()
  let found: Lead[] = []
  do {
    const left = conversationIds.filter((id) => !contacts.has(id))
    found = await leadsOfConversations(core, left, maxLeads, found.at(-1))
    for (const lead of found) {
      const { conversationId = '' } = lead
      const contact = contactOf(lead)
      if (contact && !contacts.has(conversationId)) contacts.set(conversationId, contact)
    }
  } while (found.length === maxLeads)
  return contacts
}

/** Undefined without a name and an e-mail address. */
export function contactOf({ leadId, fields }: Pick<Lead, 'leadId' | 'fields'>) {
  const name = fieldNamed(fields, 'name')
  const email = fieldNamed(fields, 'email') ?? Object.values(fields).find((value) => normalEmail(value) !== undefined)
  return (name ?? email) === undefined ? undefined : { leadId, name, email }
}

/** Ignores upper and lower case in the name. Undefined if the value is empty. */
function fieldNamed(fields: Record<string, string>, wanted: string) {
  const [, value = ''] = Object.entries(fields).find(([name]) => name.toLowerCase() === wanted) ?? []
  return value.trim() || undefined
}

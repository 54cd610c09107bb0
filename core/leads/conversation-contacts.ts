import type { ContactsOf } from '../conversations/model.ts'
import { normalEmail } from './contacts.ts'
import type { LeadStore } from './lead-store.ts'
import type { Lead } from './model.ts'

/** Maximum number of leads in one read. */
const maxLeads = 500

/** Finds the contact of each conversation: its latest lead that has a name or an e-mail address. */
export function createContactsOf(leads: Pick<LeadStore, 'ofConversations'>): ContactsOf {
  return async (conversationIds) => {
    const contacts: Awaited<ReturnType<ContactsOf>> = new Map()
    let found: Lead[] = []
    do {
      const left = conversationIds.filter((id) => !contacts.has(id))
      found = await leads.ofConversations(left, maxLeads, found.at(-1))
      for (const lead of found) {
        const { conversationId = '' } = lead
        const contact = contactOf(lead)
        if (contact && !contacts.has(conversationId)) contacts.set(conversationId, contact)
      }
    } while (found.length === maxLeads)
    return contacts
  }
}

/** Returns the contact of a lead; undefined if it has neither a name nor an e-mail address. */
export function contactOf({ leadId, fields }: Pick<Lead, 'leadId' | 'fields'>) {
  const name = fieldNamed(fields, 'name')
  const email = fieldNamed(fields, 'email') ?? Object.values(fields).find((value) => normalEmail(value) !== undefined)
  return (name ?? email) === undefined ? undefined : { leadId, name, email }
}

/**
 * Returns the value of a field, ignoring upper and lower case in its name. Returns undefined if the
 * value is empty.
 */
function fieldNamed(fields: Record<string, string>, wanted: string): string | undefined {
  const [, value = ''] = Object.entries(fields).find(([name]) => name.toLowerCase() === wanted) ?? []
  return value.trim() || undefined
}

const telling = ['name', 'fullName', 'full_name', 'displayName', 'email', 'company', 'phone', 'tel']

/** What a lead may be called: its name, else its address, else its id. */
export function leadTitle({ leadId, fields }: { leadId: string; fields: Record<string, string> }): string {
  const found = telling.map((name) => fields[name]?.trim()).find(Boolean)
  return found ?? Object.values(fields).find((value) => value.trim() !== '') ?? leadId
}

const sources: Record<string, string> = {
  'pre-chat-form': 'Pre-chat form',
  'offline-form': 'Offline form',
}

export const sourceText = (source: string) => sources[source] ?? source

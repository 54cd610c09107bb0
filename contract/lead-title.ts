const titleFields = ['name', 'fullName', 'full_name', 'displayName', 'email', 'company', 'phone', 'tel']

/** Returns the title of a lead: its name or contact data, else any field, else its ID. */
export function leadTitle({ leadId, fields }: { leadId: string; fields: Record<string, string> }): string {
  const found = titleFields.map((name) => fields[name]?.trim()).find(Boolean)
  return found ?? Object.values(fields).find((value) => value.trim() !== '') ?? leadId
}

import { EntryList } from '../ui/entry-list.tsx'
import { commonFields, mappedFieldProblem } from './subscription-words.ts'

/** What of a lead the destination gets to see. */
export function MappedFields({ names, onChange }: { names: readonly string[]; onChange: (names: string[]) => void }) {
  return (
    <EntryList
      label="Fields that it gets"
      hint="Names of lead fields. Everything else stays here; with none it gets the lead’s reference alone."
      placeholder="email"
      entries={names}
      problemOf={mappedFieldProblem}
      onChange={onChange}
      suggestions={commonFields}
    />
  )
}

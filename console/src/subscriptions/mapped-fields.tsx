import { EntryList } from '../ui/entry-list.tsx'
import { commonFields, mappedFieldProblem } from './subscription-words.ts'

/** The lead fields that the destination receives. */
export function MappedFields({ names, onChange }: { names: readonly string[]; onChange: (names: string[]) => void }) {
  return (
    <EntryList
      label="Fields to send"
      hint="Names of lead fields. Other fields are not sent. If empty, only the lead’s reference is sent."
      placeholder="email"
      entries={names}
      problemOf={mappedFieldProblem}
      onChange={onChange}
      suggestions={commonFields}
    />
  )
}

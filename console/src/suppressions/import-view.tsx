import { backTo } from '../areas.ts'
import { useLoad } from '../ui/load.ts'
import { WhenLoaded } from '../ui/notice.tsx'
import { Page } from '../ui/page.tsx'

/** The page that imports a list. Its content is loaded when the page is opened. */
export function SuppressionImportView() {
  const loaded = useLoad(() => import('./import-list.tsx'), [])
  return (
    <Page
      title="Import a list"
      back={backTo('suppressions')}
      lead="People on the imported list are added. Entries that are on the list already stay unchanged."
    >
      <WhenLoaded loaded={loaded} name="import">
        {({ ImportList }) => <ImportList />}
      </WhenLoaded>
    </Page>
  )
}

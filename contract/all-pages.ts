/** Reads a list from its first to its last page. */
export async function allPages<Page extends { nextPageToken: string }>(
  read: (pageToken: string) => Promise<Page>,
): Promise<Page[]> {
  const pages: Page[] = []
  for (let token = '', isLast = false; !isLast; isLast = token === '') {
    const page = await read(token)
    pages.push(page)
    token = page.nextPageToken
  }
  return pages
}

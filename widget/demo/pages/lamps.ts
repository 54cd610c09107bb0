import { type Lamp, type LampKind, lampKinds, lamps } from '../catalogue.ts'
import { type Html, html } from './html.ts'
import type { Page } from './page.ts'

export function homePage(): Page {
  return {
    title: 'Lamps for long evenings',
    main: html`
      <section class="hero">
        <div>
          <p class="eyebrow">From a workshop by the sea</p>
          <h1>Lamps for long evenings.</h1>
          <p class="lead">Turned ash, blown glass, bent birch, and a warm light. Made to order by nine people.</p>
          <a class="button" href="/lamps">See the lamps</a>
        </div>
        <img src="/scene.svg" width="520" height="400" alt="A pendant lamp over a laid table, the sea behind the window">
      </section>
      <section aria-labelledby="loved">
        <h2 id="loved">Most loved</h2>
        <ul class="cards">${lamps.slice(0, 3).map((lamp) => card(lamp))}</ul>
      </section>
      <section class="facts" aria-label="About us">
        <div><h2>Signed by its maker</h2><p>Every lamp is made by hand and carries the name of the person who finished it. Spare parts for life.</p></div>
        <div><h2>At your door in two weeks</h2><p>We start when you order. Delivery within Europe is free from € 120, and you can return a lamp within 60 days.</p></div>
        <div><h2>Ask us anything</h2><p>Which bulb, which height, which wood? <button class="link" type="button" data-ask="Which lamp would you hang over a table for six?">Ask in the chat</button>. We reply from nine to six.</p></div>
      </section>`,
  }
}

/**
 * Page with all lamps, or with those of one kind. `scripts/lamp-kinds.js` changes the kind without
 * a page load.
 */
export function lampsPage(chosen: LampKind | undefined): Page {
  const title = chosen ? lampKinds[chosen] : 'All lamps'
  const kinds = Object.keys(lampKinds) as LampKind[]
  const link = (path: string, name: string) =>
    html`<a href="${path}"${name === title && html` aria-current="page"`}>${name}</a>`
  return {
    title,
    main: html`
      <h1>${title}</h1>
      <nav class="kinds" aria-label="Kinds of lamps">
        ${link('/lamps', 'All lamps')} ${kinds.map((kind) => link(`/lamps/${kind}`, lampKinds[kind]))}
      </nav>
      <p class="visually-hidden" role="status" id="lamp-count"></p>
      <h2 class="visually-hidden">The lamps</h2>
      <ul class="cards">${lamps.map((lamp) => card(lamp, chosen && lamp.kind !== chosen))}</ul>`,
  }
}

export function lampPage(lamp: Lamp): Page {
  const { name, kind, summary, story, facts } = lamp
  return {
    title: name,
    main: html`
      <p class="trail"><a href="/lamps">Lamps</a> / <a href="/lamps/${kind}">${lampKinds[kind]}</a></p>
      <article class="lamp">
        <img src="/art/${lamp.id}.svg" width="400" height="340" alt="${name}: ${summary}">
        <div>
          <h1>${name}</h1>
          <p class="lead">${summary}</p>
          <p class="price">€ ${lamp.price}</p>
          <p>${story}</p>
          <p class="buttons">
            <button class="button" type="button" data-ask="I would like to order ${name}. ">Order in the chat</button>
            <button class="quiet" type="button" data-ask="I have a question about ${name}: ">Ask about it</button>
          </p>
          <dl>${Object.entries(facts).map(([fact, value]) => html`<div><dt>${fact}</dt><dd>${value}</dd></div>`)}</dl>
        </div>
      </article>`,
  }
}

function card({ id, name, kind, price, summary }: Lamp, isHidden = false): Html {
  return html`<li class="card" data-kind="${kind}"${isHidden && html` hidden`}>
    <img src="/art/${id}.svg" width="400" height="340" alt="" loading="lazy">
    <div><h3><a href="/lamp/${id}">${name}</a></h3><p class="price">€ ${price}</p><p>${summary}</p></div>
  </li>`
}

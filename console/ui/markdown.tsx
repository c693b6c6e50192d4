// Markdown as elements of the page, made of text nodes. There is no HTML, no image, and no link whose address is not read.

import { useSignal } from '@preact/signals'
import type { JSX } from 'preact'
import { useMemo } from 'preact/hooks'
import { type Block, blocksOf, type Inline, type Item, isPlain } from '../text/markdown.ts'
import { shown } from '../text/words.ts'
import { Button, ExternalLink, LongText, ScrollBox, toggle } from './basics.tsx'
import './markdown.css'

interface MarkdownProps {
  text: string
  /** The text, in words: "the prompt". */
  what: string
  /** The rank of every heading in it, below those of the page. */
  heading: 'h2' | 'h4'
}

/** Text without markup is shown as it is; other text also as it was written. */
export function Markdown({ text, what, heading }: MarkdownProps) {
  const blocks = useMemo(() => blocksOf(shown(text)), [text])
  const rendered = useMemo(
    () => blocks.map((block, i) => <BlockView key={i} {...{ block, heading }} />),
    [blocks],
  )
  const as_written = useSignal(false)
  const written = <LongText>{text}</LongText>
  if (isPlain(blocks)) return written
  return (
    <div class="prompt-formatted">
      <div class="prompt-head">
        <Button
          text="As written"
          label={`Show ${what} as written`}
          kind="quiet"
          pressed={as_written.value}
          onClick={toggle(as_written)}
        />
      </div>
      <div class="markdown" hidden={as_written.value}>
        {rendered}
      </div>
      <div hidden={!as_written.value}>{written}</div>
    </div>
  )
}

interface BlockProps {
  block: Block
  heading: 'h2' | 'h4'
}

function BlockView({ block, heading: Heading }: BlockProps) {
  const nested = (blocks: Block[]) =>
    blocks.map((each, i) => <BlockView key={i} block={each} heading={Heading} />)
  switch (block.kind) {
    case 'paragraph':
      return (
        <p class="lines" dir="auto">
          <Inlines parts={block.parts} />
        </p>
      )
    case 'heading':
      return (
        <Heading class="heading" data-level={Math.min(3, block.level)} dir="auto">
          <Inlines parts={block.parts} />
        </Heading>
      )
    case 'code':
      return (
        <div class="code-block">
          {block.info && <p class="muted small">{block.info}</p>}
          <pre>{block.text}</pre>
        </div>
      )
    case 'quote':
      return <blockquote>{nested(block.blocks)}</blockquote>
    case 'list':
      return <ListView items={block.items} {...{ nested }} />
    case 'table':
      return <TableView {...block} />
    case 'rule':
      return <hr />
  }
}

interface ListProps {
  items: Item[]
  nested: (blocks: Block[]) => JSX.Element[]
}

function ListView({ items, nested }: ListProps) {
  const List = items[0]!.number === null ? 'ul' : 'ol'
  return (
    <List>
      {items.map(({ number, blocks }, i) => (
        <li key={i} value={number ?? undefined} dir="auto">
          {nested(blocks)}
        </li>
      ))}
    </List>
  )
}

function TableView({ head, rows }: Extract<Block, { kind: 'table' }>) {
  return (
    <ScrollBox kind="markdown-table" label="Table">
      <table>
        <thead>
          <tr>
            {head.map((parts, i) => (
              <th key={i} scope="col" dir="auto">
                <Inlines {...{ parts }} />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((cells, i) => (
            <tr key={i}>
              {cells.map((parts, j) => (
                <td key={j} dir="auto">
                  <Inlines {...{ parts }} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </ScrollBox>
  )
}

function Inlines({ parts }: { parts: Inline[] }) {
  return (
    <>{parts.map((part, i) => (part.kind === 'text' ? part.text : <InlineView key={i} {...{ part }} />))}</>
  )
}

function InlineView({ part }: { part: Exclude<Inline, { kind: 'text' }> }) {
  switch (part.kind) {
    case 'code':
      return <code class="code">{part.text}</code>
    case 'em':
      return (
        <em>
          <Inlines parts={part.parts} />
        </em>
      )
    case 'strong':
      return (
        <strong>
          <Inlines parts={part.parts} />
        </strong>
      )
    case 'link':
      // The text may say anything, so the address is read beside it.
      return part.parts === null ? (
        <ExternalLink url={part.href} />
      ) : (
        <>
          <bdi>
            <Inlines parts={part.parts} />
          </bdi>{' '}
          (<ExternalLink url={part.href} />)
        </>
      )
  }
}

// Built from js/src by `make js`.
var W=[100,200,500,1e3,2e3],bt=900,vt=900,yt=8e3,xt=500,kt=96*1024*1024,B=4001,Et=[4401,4403],Tt=4410,f="-",p=class{#t;#a;#e;#s=null;#n=null;#o=0;#i=0;#r=0;#l=[];#h=0;#d=new Map;#p=0;#c=0;#g=0;#u=!1;#f=0;#m=!1;constructor({url:t,token:e,on:s}){this.#t=t,this.#a=e,this.#e=s,this.#b()}send(t,e){if(this.#u)return;this.#o+=1;let s=`${this.#o} ${t}
${e}`;this.#l.push([this.#o,s,t]);let o=(this.#d.get(t)??0)+s.length;this.#d.set(t,o),this.#w&&this.#s.send(s),o>kt&&t!==f&&(this.#v(t),this.#e.flood(t))}get#w(){return this.#s?.ready&&this.#s.readyState===WebSocket.OPEN}#v(t){for(let e of this.#l)e[2]===t&&(e[1]=`${e[0]} ${f}
{}`);this.#d.delete(t)}leave(){this.#s?.close(B,"leaving")}drop(){this.#s?.close()}giveUp(t){if(this.#u)return;clearTimeout(this.#c),this.#c=0;let e=this.#s;this.#s=null,e?.close(B,"leaving"),this.#T(t)}hurry(){this.#c?(clearTimeout(this.#c),this.#b()):this.#m||this.#k()}#b(){this.#c=0;let t=new WebSocket(this.#t);this.#s=t,t.ready=!1,t.onopen=()=>{let e={token:this.#a,page:this.#n,received:this.#i};t.send(JSON.stringify(e))},t.onmessage=({data:e})=>{this.#s===t&&(this.#y(),t.ready?this.#M(e):this.#$(t,JSON.parse(e)))},t.onclose=({code:e,reason:s})=>{this.#s===t&&(this.#s=null,clearTimeout(this.#f),Et.includes(e)?this.#T("unknown"):e===Tt?this.#T(s):this.#u||this.#S())}}#y(){this.#m&&this.#e.state("connected"),this.#m=!1,this.#x(bt,()=>this.#k())}#k(){this.#s?.ready&&(this.#E(),this.#x(vt,()=>this.#O()))}#O(){this.#m=!0,this.#e.state("reconnecting"),this.#x(yt,()=>{let t=this.#s;this.#s=null,t?.close(),this.#S()})}#x(t,e){let s=performance.now()+t;clearTimeout(this.#f),this.#f=setTimeout(()=>{document.hidden?this.#x(t,e):performance.now()>s+xt?this.#k():e()},t)}#S(){this.#m=!1,this.#e.state("reconnecting");let t=W[Math.min(this.#g,W.length-1)];this.#g+=1,this.#c=setTimeout(()=>this.#b(),t)}#$(t,{page:e,received:s,resumed:o}){this.#n!==null&&!o&&(this.#o=this.#i=this.#r=0,this.#l=[],this.#h=0,this.#d.clear(),this.#e.fresh()),this.#g=0,this.#n=e,t.ready=!0,this.#A(s);for(let[,r]of this.#l.slice(this.#h))t.send(r);this.#e.state("connected")}#M(t){let e=t.indexOf(`
`);if(e<0){this.#A(Number(t));return}let s=t.indexOf(" ");Number(t.slice(0,s))===this.#i+1&&(this.#i+=1,this.#I(),this.#e.frame(t.slice(s+1,e),t.slice(e+1)))}#A(t){for(;this.#l[this.#h]?.[0]<=t;){let[,e,s]=this.#l[this.#h];this.#h+=1;let o=(this.#d.get(s)??0)-e.length;o>0?this.#d.set(s,o):this.#d.delete(s)}this.#h*2>=this.#l.length&&(this.#l.splice(0,this.#h),this.#h=0)}#I(){this.#i-this.#r>=32||document.hidden?this.#E():this.#p||=setTimeout(()=>this.#E(),50)}#E(){clearTimeout(this.#p),this.#p=0,this.#r=this.#i,this.#w&&this.#s.send(String(this.#i))}#T(t){this.#u=!0,clearTimeout(this.#f),clearTimeout(this.#p),this.#e.state("over",t)}};var j=`/* Views and questions, in roots of their own. A page sets the --transom-* variables, or styles the parts. */

:host {
  --ground: var(--transom-ground, light-dark(#f3f4f6, #121418));
  --card: var(--transom-card, light-dark(#ffffff, #1b1e24));
  --strip: var(--transom-strip, light-dark(#fafbfc, #20242b));
  --line: var(--transom-line, light-dark(#d9dde4, #333a45));
  --text: var(--transom-text, light-dark(#1a1e26, #e7eaf0));
  --quiet: var(--transom-quiet, light-dark(#5a6371, #9aa4b3));
  --accent: var(--transom-accent, light-dark(#2152d0, #86a8ff));
  --on-accent: var(--transom-on-accent, light-dark(#ffffff, #0c1424));
  --danger: var(--transom-danger, light-dark(#b3261e, #ff9b92));
  --busy: var(--transom-busy, light-dark(#a15c00, #f0b45a));
  --shadow: var(--transom-shadow, 0 10px 36px rgb(0 0 0 / 28%));
  --round: var(--transom-round, 12px);
  --layer: var(--transom-layer, 10);
  display: block;
  color: var(--text);
  font: var(--transom-font, 15px/1.45 system-ui, sans-serif);
}

:host([hidden]) { display: none !important; }
* { box-sizing: border-box; }

button {
  font: inherit;
  color: inherit;
  background: transparent;
  border: 1px solid transparent;
  border-radius: 8px;
  cursor: pointer;
}

button:disabled { cursor: default; opacity: 0.55; }
button:hover:not(:disabled) { border-color: var(--line); background: var(--card); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }

/* --- Views --- */

:host([data-state]) {
  flex: none;
  scroll-margin: 4rem 0 1rem;
  overflow: hidden;
  border: 1px solid var(--line);
  border-radius: var(--round);
  background: var(--card);
}

/* A View that wants no border of its own still has its boundary: who it is from stays in sight. */
:host([data-border="none"][data-mode="inline"]) { border-color: transparent; background: none; }
:host([data-border="none"][data-mode="inline"]) .caption {
  border: 1px solid var(--line);
  border-radius: var(--round);
}

.caption {
  position: relative;
  display: flex;
  align-items: center;
  gap: 0.6rem;
  min-height: 2.5rem;
  padding: 0.2rem 0.35rem 0.2rem 0.9rem;
  border-bottom: 1px solid var(--line);
  background: var(--strip);
  font-size: 0.875rem;
}

:host([data-state="loading"]) .caption::after {
  content: "";
  position: absolute;
  inset: auto 0 -1px 0;
  height: 2px;
  background: linear-gradient(90deg, transparent, var(--accent), transparent) no-repeat -40% 0 / 40% 100%;
  animation: loading 1.1s linear infinite;
}

@keyframes loading { to { background-position: 140% 0; } }

/* Whose it is comes first and is never cut off; what a View says of itself gets what room is left. */
.whose { flex: 0 1 auto; overflow-wrap: anywhere; }
.whose b { font-weight: 600; unicode-bidi: isolate; }

.caption .own {
  flex: 1 1 0;
  min-width: 0;
  overflow: hidden;
  text-overflow: ellipsis;
  white-space: nowrap;
  unicode-bidi: isolate;
  color: var(--quiet);
  font-size: 0.8125rem;
  font-style: italic;
}

.caption .starting { animation: appear 0.3s 2s both; }
:host(:not([data-state="loading"])) .starting { display: none; }
@keyframes appear { from { opacity: 0; } }

.caption .buttons { display: flex; flex: none; gap: 0.1rem; }
.caption button { display: grid; place-items: center; width: 2rem; height: 2rem; padding: 0; color: var(--quiet); }
.caption button:hover { color: var(--text); }
.caption button[aria-pressed="true"] { color: var(--accent); }
.caption svg { width: 1.05rem; fill: none; stroke: currentColor; stroke-width: 1.6; stroke-linecap: round; }

.trouble { display: flex; align-items: center; flex-wrap: wrap; gap: 0.5rem; padding: 0.6rem 0.9rem; }
.trouble p { flex: 1 1 14rem; margin: 0; color: var(--quiet); overflow-wrap: anywhere; unicode-bidi: plaintext; }
.trouble button { padding: 0.3rem 0.9rem; border-color: var(--line); }
:host([data-trouble]) .trouble { border-bottom: 1px solid var(--line); border-left: 4px solid var(--busy); }
:host([data-trouble]) iframe { opacity: 0.4; filter: grayscale(1); }
:host([data-state="failed"]) { border-left: 4px solid var(--danger); }

:host([data-state="closed"]) { display: flex; flex-wrap: wrap; align-items: center; border-style: dashed; background: none; }
:host([data-state="closed"]) .caption { flex: 1 1 20rem; min-width: 0; border: 0; background: none; color: var(--quiet); }
:host([data-state="closed"]) .trouble { flex: 0 1 auto; padding: 0.3rem 0.5rem 0.3rem 0.9rem; font-size: 0.8125rem; }
:host([data-state="closed"]) .trouble p { flex: 0 1 auto; }
:host([data-held]) .trouble button { pointer-events: none; }
.about { font: 0.8125rem ui-monospace, monospace; unicode-bidi: isolate; }

.pin { flex: none; display: grid; place-items: center; color: var(--accent); }
[hidden] { display: none !important; }

.grants { padding: 0.5rem 0.9rem; border-bottom: 1px solid var(--line); background: var(--strip); font-size: 0.875rem; }
.grants p { margin: 0; color: var(--quiet); }
.grants ul { margin: 0; padding: 0; max-height: 12rem; overflow-y: auto; list-style: none; }
.grants li { display: flex; align-items: center; gap: 0.6rem; padding: 0.2rem 0; overflow-wrap: anywhere; }
.grants li span { flex: 1; }
.grants button { flex: none; padding: 0.2rem 0.8rem; border-color: var(--line); }
:host([data-state="noted"]) { border-style: dashed; font-size: 0.875rem; }

iframe { display: block; width: 100%; height: 360px; border: 0; background: transparent; }
iframe:focus-visible { outline-offset: -2px; }
:host([data-held]) iframe { pointer-events: none; }
:host([data-lost]) iframe { opacity: 0.4; filter: grayscale(1); transition: opacity 0.2s; }
:host([data-question]) { outline: 3px solid var(--accent); outline-offset: 1px; }
:host([data-question][data-mode="fullscreen"]) { outline-offset: -3px; }

:host([data-mode="fullscreen"]) {
  position: fixed;
  inset: 0;
  z-index: var(--layer);
  display: flex;
  flex-direction: column;
  margin: 0;
  border: 0;
  border-radius: 0;
}

:host([data-mode="fullscreen"]) iframe { flex: 1; height: auto !important; }

:host([data-mode="pip"]) {
  position: fixed;
  right: 16px;
  bottom: 16px;
  z-index: calc(var(--layer) - 1);
  width: min(380px, calc(100vw - 32px));
  margin: 0;
  box-shadow: var(--shadow);
}

:host([data-mode="pip"]) iframe { height: min(240px, 50vh) !important; }
:host([data-mode="pip"]) .caption { flex-wrap: wrap; row-gap: 0; }
:host([data-mode="pip"]) .whose { flex: 1 1 0; }
:host([data-mode="pip"]) .own { flex-basis: 100%; order: 1; }

/* --- questions --- */

.questions {
  position: fixed;
  inset: auto 0 0 0;
  z-index: calc(var(--layer) + 10);
  display: flex;
  flex-direction: column;
  align-items: center;
  gap: 0.75rem;
  max-height: 100vh;
  padding: 1rem;
  overflow-y: auto;
  pointer-events: none;
}

.questions:empty { display: none; }

.question {
  pointer-events: auto;
  flex: none;
  width: min(100%, 620px);
  padding: 1rem 1.1rem;
  border: 1px solid var(--accent);
  border-radius: var(--round);
  background: var(--card);
  box-shadow: var(--shadow);
}

.question:focus { outline: none; }
.question .asker { display: flex; gap: 0.6rem; font-size: 0.875rem; }
.question .more { flex: none; width: 5.5rem; margin-left: auto; color: var(--quiet); text-align: right; }
.question h2 { margin: 0.35rem 0 0.6rem; font-size: 1.0625rem; overflow-wrap: anywhere; }
.question p { margin: 0 0 0.35rem; color: var(--quiet); font-size: 0.875rem; overflow-wrap: anywhere; }

.question code,
.grants code {
  padding: 0.1em 0.35em;
  border-radius: 5px;
  background: var(--ground);
  font: 0.9375em ui-monospace, monospace;
  unicode-bidi: isolate;
}

.question pre,
.question blockquote {
  margin: 0 0 0.8rem;
  overflow: auto;
  padding: 0.6rem 0.7rem;
  border-radius: 8px;
  background: var(--ground);
  white-space: pre-wrap;
  overflow-wrap: anywhere;
  unicode-bidi: plaintext;
}

.question pre { max-height: min(11rem, 28vh); font: 0.8125rem/1.5 ui-monospace, monospace; }

.question blockquote {
  max-height: min(6rem, 16vh);
  border-left: 3px solid var(--line);
  font-size: 0.875rem;
  font-style: italic;
}

/* A press on a button that cannot be pressed yet is a press on the card: it begins nothing. */
.question button[aria-disabled="true"] { opacity: 0.55; pointer-events: none; }
.question .buttons { display: flex; margin-top: 0.8rem; flex-wrap: wrap; justify-content: flex-end; gap: 0.5rem; }
.question .buttons button { border-color: var(--line); padding: 0.4rem 1rem; white-space: nowrap; }
.question .buttons .main { border-color: var(--accent); background: var(--accent); color: var(--on-accent); }
.question .buttons .main:hover:not(:disabled) { filter: brightness(1.08); }

@media (max-width: 560px) {
  .caption { flex-wrap: wrap; row-gap: 0; }
  .caption .whose { flex: 1 1 0; }
  .caption .own { flex-basis: 100%; order: 1; }
  :host([data-state="closed"]) .trouble { flex: 1 1 100%; padding-top: 0; }
  :host([data-state="closed"]) .trouble p { flex: 1 1 100%; }
  .question .buttons button { flex: 1; }
}

@media (prefers-reduced-motion: reduce) {
  :host([data-state="loading"]) .caption::after { animation: none; background-size: 100% 100%; }
}
`;var b="ui/notifications/sandbox-",At=["inline","fullscreen","pip"],Ot="allow-scripts allow-same-origin allow-forms",v=16*1024*1024,G=6e3,$t=10,Mt=100,H="/transom-view",It=12e3,Lt=1e3,Nt=500,qt=8,Ct={fullscreen:"M3 8V3h5M12 3h5v5M17 12v5h-5M8 17H3v-5",pip:"M3 4h14v12H3zM11 10h4v4h-4z",close:"M5 5l10 10M15 5L5 15",pin:"M7 3h6M8 3v5l-3 4h10l-3-4V3M10 12v5",key:"M11 9l6-6M14 6l2.5 2.5M12 11.5a3.8 3.8 0 1 1-3.5-3.5 3.8 3.8 0 0 1 3.5 3.5z"},D=new CSSStyleSheet;D.replaceSync(j);function I(i){let t=i.attachShadow({mode:"open"});return t.adoptedStyleSheets=[D],t}function n(i,{text:t,...e}={},...s){let o=document.createElement(i);for(let[r,a]of Object.entries(e))o.setAttribute(r,a);return t!==void 0&&(o.textContent=t),o.append(...s),o}function F(i){let t=document.createElementNS("http://www.w3.org/2000/svg","svg");t.setAttribute("viewBox","0 0 20 20"),t.setAttribute("aria-hidden","true");let e=document.createElementNS("http://www.w3.org/2000/svg","path");return e.setAttribute("d",Ct[i]),t.append(e),t}function L({view:i,shown:t=i,server:e,client:s}){let o=[n("b",{text:t})," from ",n("b",{text:e})];return s&&o.push(" for ",n("b",{text:s})),n("span",{class:"whose",part:"whose"},...o)}function N(i){let{paddingLeft:t,paddingRight:e}=getComputedStyle(i),s=i.clientWidth-parseFloat(t)-parseFloat(e)-2;return{width:Math.max(0,Math.floor(s)),maxHeight:G}}var Rt=i=>i.length*3>v&&(i.length>v||new Blob([i]).size>v),y=class extends HTMLElement{#t=I(this);#a;#e;#s=0;#n=0;#o=null;#i=null;#r=null;#l=0;#h=0;#d={};start(t,e){let{view:s,origin:o,number:r,allow:a,border:h}=t,l=this.#p(t,e,"loading"),{shown:d}=this;this.origin=o,this.#a=t,this.#s=this.#n=this.#l=0,this.toggleAttribute("data-trouble",!1),h||(this.dataset.border="none"),this.own=n("span",{class:"own"},n("span",{class:"starting",text:"starting…"}));let w={class:"pin",role:"img",title:"It stays open until you close it","aria-label":"Pinned"};this.#i=n("span",w,F("pin"));let gt=n("span",{class:"buttons"},this.#u("key","What is always allowed",()=>this.#f()),this.#u("fullscreen","Full screen",()=>this.toggle("fullscreen")),this.#u("pip","Picture in the corner",()=>this.toggle("pip")),this.#u("close","Close",()=>this.close())),wt=`View ${d}`,V=`${o}${H}?${r}`;this.frame=n("iframe",{sandbox:Ot,title:wt,src:V,part:"frame"}),a&&this.frame.setAttribute("allow",a),this.frame.addEventListener("load",({target:u})=>{this.#s>0||(u.style.visibility="hidden",setTimeout(()=>{u===this.frame&&this.#s===0&&(u.src=V)},Lt))}),this.#t.append(U(l,this.#i,this.own,gt),this.frame),this.setMarks({pinned:!1,grants:[]}),this.#h=setTimeout(()=>{let u=`${o} did not load in the browser`;this.#e.notify({do:"broken",view:s,reason:u,value:!0})},It)}#p(t,e,s){let{view:o,shown:r=o}=t;this.#e=e,this.view=o,this.shown=r,this.id||=`view-${e.mark}${o}`,this.dataset.mode="inline",this.#c(s),this.setAttribute("role","region");let a=L(t);return this.setAttribute("aria-label",`View ${a.textContent}`),a}#c(t){clearTimeout(this.#h),this.frame=void 0,this.hidden=!1,this.dataset.state=t,this.#t.replaceChildren()}showGone(t,e){let{view:s,failed:o,reason:r,about:a}=t,h=this.#p(t,e,o?"failed":"closed");a&&h.append(" ",n("span",{class:"about",text:a}));let l=J(o?`It could not be shown: ${r}`:r),d={[o?"Try again":"Reopen"]:()=>e.notify({do:"retry",view:s}),[o?"Close":"Dismiss"]:()=>e.notify({do:"closed",view:s})};this.#t.append(U(h),$(this.shown,l,d,o?"alert":"group")),o&&this.#g("failed",r)}#g(t,e){let s={view:this.view,kind:t,message:e};this.dispatchEvent(new CustomEvent("problem",{bubbles:!0,composed:!0,detail:s}))}note(t,e={}){this.#c("noted"),this.toggleAttribute("data-held",!1);let s=this.getAttribute("view")??this.shown;this.#t.append($(s,t,e))}#u(t,e,s){let o={type:"button",title:e,"aria-label":`${e}: ${this.shown}`},r=n("button",o,F(t));return r.addEventListener("click",s),this.#d[t]=r,r}disconnectedCallback(){clearTimeout(this.#h)}get window(){return this.frame?.contentWindow}name({name:t,version:e}){let{uri:s}=this.#a,o=`calls itself “${t}” ${e}`.trimEnd();this.own.textContent=`${t?`${o} · `:""}${s}`,this.own.title=this.own.textContent}setMarks({pinned:t,grants:e}){if(!this.frame)return;this.#i.hidden=!t,this.#d.key.hidden=e.length===0;let s=this.#r?.isConnected&&e.length>0;this.#r?.remove(),this.#r=zt(this.shown,e,({tool:o,by:r})=>this.#e.notify({do:"withdraw",view:this.view,tool:o,by:r})),s?this.#f():this.#d.key.setAttribute("aria-expanded","false")}#f(){let t=!this.#r.isConnected;t?this.#t.querySelector(".caption").after(this.#r):this.#r.remove(),this.#d.key.setAttribute("aria-expanded",String(t)),this.#e.hold(this)}toggle(t){this.setMode(this.dataset.mode===t?"inline":t)}setMode(t){if(At.includes(t)){t!=="inline"&&this.#e.makeRoom(this,t),this.dataset.mode!==t&&this.#e.hold(this),this.dataset.mode=t;for(let e of["fullscreen","pip"])this.#d[e].setAttribute("aria-pressed",String(t===e));this.#e.rearrange(),this.sendMode()}}sendMode(){let{clientWidth:t,clientHeight:e}=this.frame,s=this.dataset.mode,o=s==="inline"?N(this.#e.place):{width:t,height:e};this.#e.notify({do:"mode",view:this.view,mode:s,size:o})}close(){this.hidden=!0,this.#e.rearrange(),this.#e.notify({do:"closed",view:this.view})}resize(t){let e=Math.min(Math.ceil(Number(t?.height)),G);e>0&&(this.frame.style.height=`${e}px`,!(Math.abs(e-this.#l)<qt)&&(this.#l=e,this.#e.hold(this)))}post(t){this.window?.postMessage(t,this.origin)}receive(t){let e=t?.method;if(typeof e=="string"){if(e.startsWith(b)){e===`${b}proxy-ready`?this.#v():e===`${b}view-loaded`&&this.#w({do:"loaded",value:t.params?.gone===!0});return}e==="ui/notifications/size-changed"?this.resize(t.params):e==="ui/notifications/initialized"&&(this.dataset.state="live")}let s;try{s=JSON.stringify(t)}catch{s=void 0}s===void 0?this.#m(t,"is not JSON"):Rt(s)?this.#m(t,`is larger than ${v} bytes`):this.#e.send(this.view,s)}#m(t,e){let{id:s}=t??{};if(this.#w({do:"refused",reason:`A message ${e}`}),t?.method===void 0&&(typeof s=="number"||typeof s=="string")){let o={code:-32603,message:`The View's answer ${e}: it was not passed on`};this.#e.send(this.view,JSON.stringify({jsonrpc:"2.0",id:s,error:o}))}}#w(t){this.#n+=1,this.#n<=Mt&&this.#e.notify({view:this.view,...t})}setTrouble(t){if(this.#o?.remove(),this.toggleAttribute("data-trouble",!!t),!t)return;let{view:e,shown:s}=this;this.#o=$(s,`It does not respond: ${J(t)}`,{Reload:()=>this.#e.notify({do:"reload",view:e}),Close:()=>this.close()}),this.frame.before(this.#o),this.#e.hold(this),this.#g("unresponsive",t)}#v(){if(clearTimeout(this.#h),this.frame.style.visibility="",this.#s+=1,this.#s>$t){this.#e.notify({do:"broken",view:this.view,reason:"it keeps reloading itself"});return}let{html:t,allow:e}=this.#a;this.post({jsonrpc:"2.0",method:`${b}resource-ready`,params:{html:t,allow:e}})}},U=(...i)=>n("div",{class:"caption",part:"caption"},...i),J=i=>i.replace(/\.?$/,".");function $(i,t,e,s="alert"){let o=Object.entries(e).map(([a,h])=>{let l=n("button",{type:"button",text:a,"aria-label":`${a}: ${i}`});return l.addEventListener("click",()=>{for(let d of o)d.disabled=!0;h()}),l});return n("div",{class:"trouble",part:"note",role:s},n("p",{text:t}),...o)}function zt(i,t,e){let s=t.map(r=>{let a=r.by==="view"?"The View calls its server's ":"The model calls ",h=`Ask again before ${r.shown}: ${i}`,l=n("button",{type:"button",text:"Ask again","aria-label":h});l.addEventListener("click",()=>{l.disabled=!0,e(r)});let d=n("span",{},a,n("code",{text:r.shown}));return n("li",{},d,l)}),o={class:"grants",part:"grants",role:"region","aria-label":`Always allowed: ${i}`};return n("div",o,n("p",{text:"You are not asked before"}),n("ul",{},...s))}var M=(i,t)=>`${i.number} ${t}`,x=class{#t=new Map;#a=new Map;#e=0;#s;constructor(t){this.#s=t,window.addEventListener("message",({source:e,origin:s,data:o})=>{let r=this.#a.get(e);r?.origin===s&&r.receive(o)})}get(t,e){return this.#t.get(M(t,e))}mount(t,e){let s=this.#n(t,e.view);s.start(e,this.#i(t,s)),this.#a.set(s.window,s),this.#o(s),s.placed&&s.sendMode()}showGone(t,e){let s=this.#n(t,e.view);s.showGone(e,this.#i(t,s)),e.failed?this.#o(s):this.#r()}clearStorage(t){for(let e of t){let s=n("iframe",{src:`${e}${H}`,sandbox:"",hidden:""});s.addEventListener("load",()=>s.remove()),document.body.append(s)}}#n(t,e){this.drop(t,e);let s=this.#s(e);return s.agent=t,this.#t.set(M(t,e),s),s}#o(t){this.#r(),t.placed||t.scrollIntoView({block:"nearest"})}#i(t,e){return{place:e.placed?e:e.parentElement,mark:t.number?`${t.number}:`:"",notify:t.notify,send:t.send,makeRoom:this.#l,rearrange:this.#h,hold:this.#r}}drop(t,e){let s=this.get(t,e);s&&(this.#t.delete(M(t,e)),this.#a.delete(s.window),s.placed?s.note(""):s.remove(),this.#r(),this.#h())}clear(t){for(let e of[...this.#t.values()])e.agent===t&&this.drop(t,e.view)}pointAt(t,e){let s=t&&this.get(t,e);for(let o of this.#t.values())o.toggleAttribute("data-question",o===s);if(s?.frame)return this.#r(),s.scrollIntoView({block:"nearest"}),s.frame}#r=t=>{let e=s=>{for(let o of this.#t.values())o.toggleAttribute("data-held",s&&o!==t)};e(!0),clearTimeout(this.#e),this.#e=setTimeout(e,Nt,!1)};reached(t,e){for(let s of this.#t.values())s.agent===t&&s.toggleAttribute("data-lost",!e)}resized(){for(let t of this.#t.values())t.frame&&(t.placed||t.dataset.mode!=="inline")&&t.sendMode()}get fullscreen(){return[...this.#t.values()].find(t=>t.dataset.mode==="fullscreen"&&!t.hidden)}#l=(t,e)=>{for(let s of this.#t.values())s!==t&&s.dataset.mode===e&&s.setMode("inline")};#h=()=>{let t=this.fullscreen;document.body.toggleAttribute("data-covered",t!==void 0);for(let e of this.#t.values())e.inert=t!==void 0&&e!==t}};var k=class{#t;#a;#e;state="connecting";constructor(t,{url:e,token:s},o){this.number=t,this.#t=o.views,this.#a=o.questions,this.#e=o,this.link=new p({url:e,token:s,on:this.#i})}notify=t=>this.link.send(f,JSON.stringify(t));send=(t,e)=>this.link.send(t,e);#s={mount:t=>this.#t.mount(this,t),unmount:({view:t})=>this.#t.drop(this,t),trouble:({view:t,reason:e})=>this.#t.get(this,t)?.setTrouble(e),gone:t=>this.#t.showGone(this,t),marks:t=>this.#t.get(this,t.view)?.setMarks(t),clear:({origins:t})=>this.#t.clearStorage(t),named:t=>this.#t.get(this,t.view)?.name(t),mode:({view:t,mode:e})=>this.#t.get(this,t)?.setMode(e),ask:t=>this.#a.ask(this,t,e=>this.#n(t,e)),unask:({id:t})=>this.#a.withdraw(this,t),download:({name:t,mime:e,data:s})=>_t(t,e,s)};#n({id:t,kind:e,url:s},o){this.notify({do:"answer",id:t,value:o}),e==="link"&&o&&window.open(s,"_blank","noopener,noreferrer")}#o(){this.#t.clear(this),this.#a.clear(this)}#i={frame:(t,e)=>{let s=JSON.parse(e);t===f?(this.#s[s.do]??this.#e.onMessage)(s):this.#t.get(this,t)?.post(s)},state:(t,e)=>{this.state=t,t==="over"?this.#o():this.#t.reached(this,t==="connected"),this.#e.onState(this,e)},fresh:()=>{this.#o(),this.#e.onFresh?.()},flood:t=>{this.#t.drop(this,t),this.notify({do:"broken",view:t,reason:"it sends more than the host takes"})}}};function _t(i,t,e){let s=Uint8Array.from(atob(e),r=>r.charCodeAt(0)),o=URL.createObjectURL(new Blob([s],{type:t}));n("a",{href:o,download:i}).click(),setTimeout(()=>URL.revokeObjectURL(o),1e4)}var K=i=>({do:"surroundings",value:{locale:navigator.language,timeZone:Intl.DateTimeFormat().resolvedOptions().timeZone,userAgent:"transom",platform:"web",deviceCapabilities:{touch:navigator.maxTouchPoints>0,hover:matchMedia("(hover: hover)").matches},...i}});var q="transom-token",C="transom-joined";var m=new BroadcastChannel(`transom ${location.pathname}`);function P(){let i=new URLSearchParams(location.hash.slice(1)).get("token");return i&&(sessionStorage.setItem(q,i),history.replaceState(null,"",location.pathname)),i??sessionStorage.getItem(q)??""}function X(i){sessionStorage.setItem(C,JSON.stringify(i))}function Y(){try{return JSON.parse(sessionStorage.getItem(C)??"[]")}catch{return[]}}function Q(i){m.addEventListener("message",({data:t})=>{if(t.do!=="ask"||!i())return;let e=Object.fromEntries([q,C].map(s=>[s,sessionStorage.getItem(s)]));m.postMessage({do:"kept",kept:e})})}function Z(){return new Promise(i=>{let t=setTimeout(()=>i(null),1e3);m.addEventListener("message",function e({data:s}){s.do==="kept"&&(clearTimeout(t),m.removeEventListener("message",e),i(()=>{for(let[o,r]of Object.entries(s.kept))sessionStorage.setItem(o,r??"");location.reload()}))}),m.postMessage({do:"ask"})})}var Vt=20,tt=3e4,Wt=/^http:\/\/127\.0\.0\.1:\d{1,5}$/,E=class{#t=new Map;#a=null;#e=0;#s;#n;#o;constructor({views:t,questions:e,onState:s,onConnected:o,onNotice:r}){this.#s={views:t,questions:e,onState:(a,h)=>this.#l(a,h),onMessage:({do:a,origin:h,token:l,text:d})=>{a==="join"?this.join(h,l):a==="notice"&&r(d)}},this.#n=s,this.#o=o}start(t,e){let s=Y();this.#a=this.#i(t,{url:t,token:e});for(let o of s)o.url!==t&&this.join(o.origin,o.token);return this.#a}join(t,e){if(!Wt.test(t)||typeof e!="string")return;let s=`${t.replace("http","ws")}/socket`,o=this.#t.get(s);!o&&this.#t.size>=Vt||(o?.link.giveUp("it joined again"),this.#i(s,{url:s,token:e,origin:t}),this.#r())}#i(t,e){let s=new k(this.#e,e,this.#s);return this.#e+=1,s.url=t,s.options=e,this.#t.set(t,s),s}#r(){let t=[...this].map(({options:s})=>s).filter(({origin:s})=>s),e=this.#a?.state==="connected";X(e?t:[])}[Symbol.iterator](){return this.#t.values()}#l(t,e){clearTimeout(t.losing),t.state==="over"&&this.#t.get(t.url)===t&&this.#t.delete(t.url),this.#r(),t.state==="reconnecting"&&(t.losing=setTimeout(()=>this.#h(t),tt)),t.state==="connected"&&this.#o(t);let s=[...this].map(({state:o})=>o);s.length===0?this.#n("over",!0,e):s.includes("reconnecting")?this.#n("reconnecting",!s.includes("connected")):s.includes("connected")&&this.#n("connected",!1)}#h(t){[...this].some(({state:e})=>e==="connected")?t.link.giveUp("it is gone"):t.losing=setTimeout(()=>this.#h(t),tt)}};var et=500,Bt=1500,jt=100,st=2e4,Ft=i=>i.length<=st?i:`${i.slice(0,st)}
… (${i.length} characters)`,Ut=i=>{let t=["bytes","KB","MB"],e=0;for(;i>=1024&&e<2;e+=1)i/=1024;return`${e?i.toFixed(1):i} ${t[e]}`},c=i=>n("p",{text:i}),z=i=>n("pre",{text:Ft(i),tabindex:"0"}),it={approve:{title:({tool:i,by:t,opens:e})=>[e?"Let ":t==="view"?"Let the View call its server's ":"Let the model call ",n("code",{text:i}),e?" open a View?":"?"],body:i=>[...Jt(i),...Gt(i),...Ht(i)],answers:[["Allow","allow"],["Always allow","always"],["Refuse","deny"]]},link:{title:({url:i})=>[i.startsWith("mailto:")?"Write this mail?":`Open ${ot(i).host}?`],body:({url:i})=>[c("The View wants to open:"),z(ot(i).href)],answers:[["Open",!0],["Refuse",!1]]},download:{title:({files:i})=>[i.length===1?"Save this file?":`Save ${i.length} files?`],body:({files:i})=>[c("The View wants to save:"),z(i.map(t=>`${t.name}  (${Ut(t.bytes)})`).join(`
`))],answers:[["Save",!0],["Refuse",!1]]},pin:{title:()=>["Keep this View open?"],body:({reason:i})=>[c("It would not be closed to make room for others, until you close it."),...i?[c("The View says why:"),n("blockquote",{text:i})]:[]],answers:[["Keep open",!0],["Refuse",!1]]},withdrawn:{title:()=>["That question was withdrawn"],body:()=>[c("Whoever asked does not need an answer any more.")],answers:[["Next question",null]]}},R={asker:null,question:{kind:"withdrawn"},onAnswer(){}};function ot(i){try{return new URL(i)}catch{return{href:i,host:"this link"}}}function Jt({description:i,opens:t}){return i?[c(`The ${t?"server":"View"} says what it does:`),n("blockquote",{text:i})]:[]}function Gt({arguments:i}){return Object.keys(i).length===0?[c("It is called without arguments.")]:[c("It is called with:"),z(JSON.stringify(i,null,2))]}function Ht({changed:i,granted:t=[]}){let e=[];return i&&e.push("You always allowed this tool. It has changed since, so you are asked again."),t.length&&e.push(`You always allow this View: ${t.join(", ")}.`),e.map(c)}function Dt(){let i=document.activeElement;for(;i?.shadowRoot?.activeElement;)i=i.shadowRoot.activeElement;return i}var T=class{#t;#a=n("div",{class:"questions","aria-live":"polite"});#e;#s;#n=[];#o=null;#i=null;#r=[];#l=null;#h=et;#d=0;#p=0;#c=!1;constructor(t,e,s=()=>{}){this.#t=t,this.#e=e,this.#s=s,I(t).append(this.#a),addEventListener("pointerdown",()=>this.#v(),!0),addEventListener("keydown",({key:o})=>["Enter"," "].includes(o)&&this.#v(),!0),addEventListener("resize",()=>this.#b())}ask(t,e,s){it[e.kind]&&(this.#n.push({asker:t,question:e,onAnswer:s}),this.#o?this.#w():this.#f(this.#n.shift()))}withdraw(t,e){this.#g(s=>s.asker===t&&s.question.id===e)}clear(t){this.#g(e=>e.asker===t)}#g(t){this.#n=this.#n.filter(s=>!t(s));let e=this.#n.length>0;this.#o&&t(this.#o)?this.#f(e?R:null):this.#o===R&&!e?this.#f(null):this.#w()}#u(t){let{onAnswer:e}=this.#o;this.#f(this.#n.shift()??null),e(t)}#f(t){let e=Dt();this.#o=t,this.#i?.remove(),this.#i=t&&this.#m(t.question);let s=t?this.#e(t.asker,t.question):this.#e();clearInterval(this.#p),this.#i&&(this.#h=e instanceof HTMLIFrameElement?Bt:et,this.#p=setInterval(()=>this.#y(),jt),this.#a.append(this.#i),(t.question.kind!=="approve"&&e===s||!e||e===document.body)&&this.#i.focus(),this.#b()),this.#w()}#m(t){let{title:e,body:s,answers:o}=it[t.kind],r=n("h2",{},...e(t));this.#l=n("span",{class:"more"}),this.#r=o.map(([h,l],d)=>{let w=n("button",{type:"button",text:h,class:d?"":"main"});return w.addEventListener("click",()=>this.#c&&this.#u(l)),w});let a=n("section",{class:"question",part:"question",role:"alertdialog","aria-label":r.textContent,tabindex:"-1"},n("div",{class:"asker"},t.server?L(t):"",this.#l),r,...s(t),n("div",{class:"buttons"},...this.#r));return a.addEventListener("keydown",h=>{h.key==="Escape"&&(h.stopPropagation(),this.#u(o.at(-1)[1]))}),a}#w(){let t=this.#n.length,e=t+(this.#o&&this.#o!==R?1:0);this.#i&&(this.#l.textContent=t?`and ${t} more`:""),this.#t.toggleAttribute("data-asking",!!this.#i),this.#s(e)}#v(){this.#c||this.#b()}#b(){this.#d=performance.now(),this.#y()}#y(){let t=performance.now();(document.hidden||!document.hasFocus())&&(this.#d=t),this.#c=t-this.#d>=this.#h;for(let e of this.#r)e.ariaDisabled=String(!this.#c)}};var nt=3e4,ht=document.getElementById("views"),_=document.getElementById("state"),S=document.getElementById("banner"),rt=document.getElementById("notice"),g=document.getElementById("empty"),Kt=g.textContent,lt=matchMedia("(prefers-color-scheme: dark)");customElements.define("transom-view",y);var A=new x(()=>ht.appendChild(document.createElement("transom-view"))),Pt=new T(document.getElementById("questions"),(i,t)=>A.pointAt(i,t?.view),i=>{document.title=i?`(${i}) Transom`:"Transom"}),O=new E({views:A,questions:Pt,onConnected:i=>i.notify(ut()),onNotice(i){rt.textContent=i,rt.hidden=!i},onState(i,t,e){i!=="reconnecting"?Yt():_.dataset.state!==i&&Xt(t?"the agent":"an agent"),_.dataset.state=i,_.textContent=i==="connected"?"Connected":"Not connected",i==="over"?Qt(e):g.textContent=Kt}}),dt=0;function Xt(i){S.textContent=`No connection to ${i}. Trying again…`,S.hidden=!1,dt=setTimeout(()=>{S.textContent=`No connection to ${i} for ${nt/1e3} seconds. If it has ended, you can close this page. If it comes back, its Views do, too.`},nt)}function Yt(){clearTimeout(dt),S.hidden=!0}async function Qt(i){if(i==="the agent has ended")g.textContent="The agent has ended. You can close this page.";else if(i==="unknown")await Zt();else{let t=i?`${i[0].toUpperCase()}${i.slice(1)}`:"The agent has hung up";ct(`${t}.`,()=>location.reload())}}async function Zt(){let i=await Z();i?ct("The Views are shown in another tab of this browser.",i):g.textContent="The agent does not know this page. Open the address that it gives you now."}function ct(i,t){let e=n("button",{type:"button",text:"Show them here"});e.addEventListener("click",t,{once:!0}),g.replaceChildren(i," ",e)}var ut=()=>K({theme:lt.matches?"dark":"light",containerDimensions:N(ht)});function ft(){for(let i of O)i.notify(ut())}function pt(){for(let i of O)i.link.hurry()}var at=0;addEventListener("resize",()=>{clearTimeout(at),at=setTimeout(()=>{ft(),A.resized()},150)});lt.addEventListener("change",ft);addEventListener("keydown",({key:i})=>{i==="Escape"&&A.fullscreen?.setMode("inline")});addEventListener("pagehide",()=>{for(let i of O)i.link.leave()});addEventListener("online",pt);document.addEventListener("visibilitychange",pt);var mt=O.start(new URL("socket",location.href).href.replace("http","ws"),P());Q(()=>mt.state==="connected");var{link:ve}=mt;export{p as Link,ve as link,A as views};

// Built from js/src by `make js`.
var B=[100,200,500,1e3,2e3],at=900,ht=900,lt=8e3,dt=500,ct=96*1024*1024,D=4001,ut=[4401,4403],ft=4410,g="-",k=class{#t;#n;#e;#s=null;#r=null;#o=0;#i=0;#a=0;#l=[];#h=0;#d=new Map;#p=0;#c=0;#w=0;#u=!1;#f=0;#m=!1;constructor({url:t,token:e,on:s}){this.#t=t,this.#n=e,this.#e=s,this.#b()}send(t,e){if(this.#u)return;this.#o+=1;let s=`${this.#o} ${t}
${e}`;this.#l.push([this.#o,s,t]);let o=(this.#d.get(t)??0)+s.length;this.#d.set(t,o),this.#g&&this.#s.send(s),o>ct&&t!==g&&(this.#v(t),this.#e.flood(t))}get#g(){return this.#s?.ready&&this.#s.readyState===WebSocket.OPEN}#v(t){for(let e of this.#l)e[2]===t&&(e[1]=`${e[0]} ${g}
{}`);this.#d.delete(t)}leave(){this.#s?.close(D,"leaving")}drop(){this.#s?.close()}giveUp(t){if(this.#u)return;clearTimeout(this.#c),this.#c=0;let e=this.#s;this.#s=null,e?.close(D,"leaving"),this.#A(t)}hurry(){this.#c?(clearTimeout(this.#c),this.#b()):this.#m||this.#x()}#b(){this.#c=0;let t=new WebSocket(this.#t);this.#s=t,t.ready=!1,t.onopen=()=>{let e={token:this.#n,page:this.#r,received:this.#i};t.send(JSON.stringify(e))},t.onmessage=({data:e})=>{this.#s===t&&(this.#y(),t.ready?this.#O(e):this.#$(t,JSON.parse(e)))},t.onclose=({code:e,reason:s})=>{this.#s===t&&(this.#s=null,clearTimeout(this.#f),ut.includes(e)?this.#A("unknown"):e===ft?this.#A(s):this.#u||this.#S())}}#y(){this.#m&&this.#e.state("connected"),this.#m=!1,this.#k(at,()=>this.#x())}#x(){this.#s?.ready&&(this.#E(),this.#k(ht,()=>this.#M()))}#M(){this.#m=!0,this.#e.state("reconnecting"),this.#k(lt,()=>{let t=this.#s;this.#s=null,t?.close(),this.#S()})}#k(t,e){let s=performance.now()+t;clearTimeout(this.#f),this.#f=setTimeout(()=>{document.hidden?this.#k(t,e):performance.now()>s+dt?this.#x():e()},t)}#S(){this.#m=!1,this.#e.state("reconnecting");let t=B[Math.min(this.#w,B.length-1)];this.#w+=1,this.#c=setTimeout(()=>this.#b(),t)}#$(t,{page:e,received:s,resumed:o}){this.#r!==null&&!o&&(this.#o=this.#i=this.#a=0,this.#l=[],this.#h=0,this.#d.clear(),this.#e.fresh()),this.#w=0,this.#r=e,t.ready=!0,this.#T(s);for(let[,r]of this.#l.slice(this.#h))t.send(r);this.#e.state("connected")}#O(t){let e=t.indexOf(`
`);if(e<0){this.#T(Number(t));return}let s=t.indexOf(" ");Number(t.slice(0,s))===this.#i+1&&(this.#i+=1,this.#L(),this.#e.frame(t.slice(s+1,e),t.slice(e+1)))}#T(t){for(;this.#l[this.#h]?.[0]<=t;){let[,e,s]=this.#l[this.#h];this.#h+=1;let o=(this.#d.get(s)??0)-e.length;o>0?this.#d.set(s,o):this.#d.delete(s)}this.#h*2>=this.#l.length&&(this.#l.splice(0,this.#h),this.#h=0)}#L(){this.#i-this.#a>=32||document.hidden?this.#E():this.#p||=setTimeout(()=>this.#E(),50)}#E(){clearTimeout(this.#p),this.#p=0,this.#a=this.#i,this.#g&&this.#s.send(String(this.#i))}#A(t){this.#u=!0,clearTimeout(this.#f),clearTimeout(this.#p),this.#e.state("over",t)}};var G=`/* Views and questions, in roots of their own. A page sets the --transom-* variables, or styles the parts. */

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
`;var x="ui/notifications/sandbox-",mt=["inline","fullscreen","pip"],wt="allow-scripts allow-same-origin allow-forms",E=16*1024*1024,P=6e3,gt=10,bt=100,X="/transom-view",vt=12e3,yt=1e3,kt=500,xt=8,Et={fullscreen:"M3 8V3h5M12 3h5v5M17 12v5h-5M8 17H3v-5",pip:"M3 4h14v12H3zM11 10h4v4h-4z",close:"M5 5l10 10M15 5L5 15",pin:"M7 3h6M8 3v5l-3 4h10l-3-4V3M10 12v5",key:"M11 9l6-6M14 6l2.5 2.5M12 11.5a3.8 3.8 0 1 1-3.5-3.5 3.8 3.8 0 0 1 3.5 3.5z"},J=new CSSStyleSheet;J.replaceSync(G);function C(i){let t=i.attachShadow({mode:"open"});return t.adoptedStyleSheets=[J],t}function n(i,{text:t,...e}={},...s){let o=document.createElement(i);for(let[r,a]of Object.entries(e))o.setAttribute(r,a);return t!==void 0&&(o.textContent=t),o.append(...s),o}function K(i){let t=document.createElementNS("http://www.w3.org/2000/svg","svg");t.setAttribute("viewBox","0 0 20 20"),t.setAttribute("aria-hidden","true");let e=document.createElementNS("http://www.w3.org/2000/svg","path");return e.setAttribute("d",Et[i]),t.append(e),t}function R({view:i,shown:t=i,server:e,client:s}){let o=[n("b",{text:t})," from ",n("b",{text:e})];return s&&o.push(" for ",n("b",{text:s})),n("span",{class:"whose",part:"whose"},...o)}function At(i){let{paddingLeft:t,paddingRight:e}=getComputedStyle(i),s=i.clientWidth-parseFloat(t)-parseFloat(e)-2;return{width:Math.max(0,Math.floor(s)),maxHeight:P}}var St=i=>i.length*3>E&&(i.length>E||new Blob([i]).size>E),A=class extends HTMLElement{#t=C(this);#n;#e;#s=0;#r=0;#o=null;#i=null;#a=null;#l=0;#h=0;#d={};start(t,e){let{view:s,origin:o,number:r,allow:a,border:h}=t,l=this.#p(t,e,"loading"),{shown:c}=this;this.origin=o,this.#n=t,this.#s=this.#r=this.#l=0,this.toggleAttribute("data-trouble",!1),h||(this.dataset.border="none"),this.own=n("span",{class:"own"},n("span",{class:"starting",text:"starting…"}));let y={class:"pin",role:"img",title:"It stays open until you close it","aria-label":"Pinned"};this.#i=n("span",y,K("pin"));let nt=n("span",{class:"buttons"},this.#u("key","What is always allowed",()=>this.#f()),this.#u("fullscreen","Full screen",()=>this.toggle("fullscreen")),this.#u("pip","Picture in the corner",()=>this.toggle("pip")),this.#u("close","Close",()=>this.close())),rt=`View ${c}`,H=`${o}${X}?${r}`;this.frame=n("iframe",{sandbox:wt,title:rt,src:H,part:"frame"}),a&&this.frame.setAttribute("allow",a),this.frame.addEventListener("load",({target:w})=>{this.#s>0||(w.style.visibility="hidden",setTimeout(()=>{w===this.frame&&this.#s===0&&(w.src=H)},yt))}),this.#t.append(U(l,this.#i,this.own,nt),this.frame),this.setMarks({pinned:!1,grants:[]}),this.#h=setTimeout(()=>{let w=`${o} did not load in the browser`;this.#e.notify({do:"broken",view:s,reason:w,value:!0})},vt)}#p(t,e,s){let{view:o,shown:r=o}=t;this.#e=e,this.view=o,this.shown=r,this.id||=`view-${e.mark}${o}`,this.dataset.mode="inline",this.#c(s),this.setAttribute("role","region");let a=R(t);return this.setAttribute("aria-label",`View ${a.textContent}`),a}#c(t){clearTimeout(this.#h),this.frame=void 0,this.hidden=!1,this.dataset.state=t,this.#t.replaceChildren()}showGone(t,e){let{view:s,failed:o,reason:r,about:a}=t,h=this.#p(t,e,o?"failed":"closed");a&&h.append(" ",n("span",{class:"about",text:a}));let l=j(o?`It could not be shown: ${r}`:r),c={[o?"Try again":"Reopen"]:()=>e.notify({do:"retry",view:s}),[o?"Close":"Dismiss"]:()=>e.notify({do:"closed",view:s})};this.#t.append(U(h),L(this.shown,l,c,o?"alert":"group")),o&&this.#w("failed",r)}#w(t,e){let s={view:this.view,kind:t,message:e};this.dispatchEvent(new CustomEvent("problem",{bubbles:!0,composed:!0,detail:s}))}note(t,e={}){this.#c("noted"),this.toggleAttribute("data-held",!1);let s=this.getAttribute("view")??this.shown;this.#t.append(L(s,t,e))}#u(t,e,s){let o={type:"button",title:e,"aria-label":`${e}: ${this.shown}`},r=n("button",o,K(t));return r.addEventListener("click",s),this.#d[t]=r,r}disconnectedCallback(){clearTimeout(this.#h)}get window(){return this.frame?.contentWindow}name({name:t,version:e}){let{uri:s}=this.#n,o=`calls itself “${t}” ${e}`.trimEnd();this.own.textContent=`${t?`${o} · `:""}${s}`,this.own.title=this.own.textContent}setMarks({pinned:t,grants:e}){if(!this.frame)return;this.#i.hidden=!t,this.#d.key.hidden=e.length===0;let s=this.#a?.isConnected&&e.length>0;this.#a?.remove(),this.#a=Tt(this.shown,e,({tool:o,by:r})=>this.#e.notify({do:"withdraw",view:this.view,tool:o,by:r})),s?this.#f():this.#d.key.setAttribute("aria-expanded","false")}#f(){let t=!this.#a.isConnected;t?this.#t.querySelector(".caption").after(this.#a):this.#a.remove(),this.#d.key.setAttribute("aria-expanded",String(t)),this.#e.hold(this)}toggle(t){this.setMode(this.dataset.mode===t?"inline":t)}setMode(t){if(mt.includes(t)){t!=="inline"&&this.#e.makeRoom(this,t),this.dataset.mode!==t&&this.#e.hold(this),this.dataset.mode=t;for(let e of["fullscreen","pip"])this.#d[e].setAttribute("aria-pressed",String(t===e));this.#e.rearrange(),this.sendMode()}}sendMode(){let{clientWidth:t,clientHeight:e}=this.frame,s=this.dataset.mode,o=s==="inline"?At(this.#e.place):{width:t,height:e};this.#e.notify({do:"mode",view:this.view,mode:s,size:o})}close(){this.hidden=!0,this.#e.rearrange(),this.#e.notify({do:"closed",view:this.view})}resize(t){let e=Math.min(Math.ceil(Number(t?.height)),P);e>0&&(this.frame.style.height=`${e}px`,!(Math.abs(e-this.#l)<xt)&&(this.#l=e,this.#e.hold(this)))}post(t){this.window?.postMessage(t,this.origin)}receive(t){let e=t?.method;if(typeof e=="string"){if(e.startsWith(x)){e===`${x}proxy-ready`?this.#v():e===`${x}view-loaded`&&this.#g({do:"loaded",value:t.params?.gone===!0});return}e==="ui/notifications/size-changed"?this.resize(t.params):e==="ui/notifications/initialized"&&(this.dataset.state="live")}let s;try{s=JSON.stringify(t)}catch{s=void 0}s===void 0?this.#m(t,"is not JSON"):St(s)?this.#m(t,`is larger than ${E} bytes`):this.#e.send(this.view,s)}#m(t,e){let{id:s}=t??{};if(this.#g({do:"refused",reason:`A message ${e}`}),t?.method===void 0&&(typeof s=="number"||typeof s=="string")){let o={code:-32603,message:`The View's answer ${e}: it was not passed on`};this.#e.send(this.view,JSON.stringify({jsonrpc:"2.0",id:s,error:o}))}}#g(t){this.#r+=1,this.#r<=bt&&this.#e.notify({view:this.view,...t})}setTrouble(t){if(this.#o?.remove(),this.toggleAttribute("data-trouble",!!t),!t)return;let{view:e,shown:s}=this;this.#o=L(s,`It does not respond: ${j(t)}`,{Reload:()=>this.#e.notify({do:"reload",view:e}),Close:()=>this.close()}),this.frame.before(this.#o),this.#e.hold(this),this.#w("unresponsive",t)}#v(){if(clearTimeout(this.#h),this.frame.style.visibility="",this.#s+=1,this.#s>gt){this.#e.notify({do:"broken",view:this.view,reason:"it keeps reloading itself"});return}let{html:t,allow:e}=this.#n;this.post({jsonrpc:"2.0",method:`${x}resource-ready`,params:{html:t,allow:e}})}},U=(...i)=>n("div",{class:"caption",part:"caption"},...i),j=i=>i.replace(/\.?$/,".");function L(i,t,e,s="alert"){let o=Object.entries(e).map(([a,h])=>{let l=n("button",{type:"button",text:a,"aria-label":`${a}: ${i}`});return l.addEventListener("click",()=>{for(let c of o)c.disabled=!0;h()}),l});return n("div",{class:"trouble",part:"note",role:s},n("p",{text:t}),...o)}function Tt(i,t,e){let s=t.map(r=>{let a=r.by==="view"?"The View calls its server's ":"The model calls ",h=`Ask again before ${r.shown}: ${i}`,l=n("button",{type:"button",text:"Ask again","aria-label":h});l.addEventListener("click",()=>{l.disabled=!0,e(r)});let c=n("span",{},a,n("code",{text:r.shown}));return n("li",{},c,l)}),o={class:"grants",part:"grants",role:"region","aria-label":`Always allowed: ${i}`};return n("div",o,n("p",{text:"You are not asked before"}),n("ul",{},...s))}var q=(i,t)=>`${i.number} ${t}`,S=class{#t=new Map;#n=new Map;#e=0;#s;constructor(t){this.#s=t,window.addEventListener("message",({source:e,origin:s,data:o})=>{let r=this.#n.get(e);r?.origin===s&&r.receive(o)})}get(t,e){return this.#t.get(q(t,e))}mount(t,e){let s=this.#r(t,e.view);s.start(e,this.#i(t,s)),this.#n.set(s.window,s),this.#o(s),s.placed&&s.sendMode()}showGone(t,e){let s=this.#r(t,e.view);s.showGone(e,this.#i(t,s)),e.failed?this.#o(s):this.#a()}clearStorage(t){for(let e of t){let s=n("iframe",{src:`${e}${X}`,sandbox:"",hidden:""});s.addEventListener("load",()=>s.remove()),document.body.append(s)}}#r(t,e){this.drop(t,e);let s=this.#s(e);return s.agent=t,this.#t.set(q(t,e),s),s}#o(t){this.#a(),t.placed||t.scrollIntoView({block:"nearest"})}#i(t,e){return{place:e.placed?e:e.parentElement,mark:t.number?`${t.number}:`:"",notify:t.notify,send:t.send,makeRoom:this.#l,rearrange:this.#h,hold:this.#a}}drop(t,e){let s=this.get(t,e);s&&(this.#t.delete(q(t,e)),this.#n.delete(s.window),s.placed?s.note(""):s.remove(),this.#a(),this.#h())}clear(t){for(let e of[...this.#t.values()])e.agent===t&&this.drop(t,e.view)}pointAt(t,e){let s=t&&this.get(t,e);for(let o of this.#t.values())o.toggleAttribute("data-question",o===s);if(s?.frame)return this.#a(),s.scrollIntoView({block:"nearest"}),s.frame}#a=t=>{let e=s=>{for(let o of this.#t.values())o.toggleAttribute("data-held",s&&o!==t)};e(!0),clearTimeout(this.#e),this.#e=setTimeout(e,kt,!1)};reached(t,e){for(let s of this.#t.values())s.agent===t&&s.toggleAttribute("data-lost",!e)}resized(){for(let t of this.#t.values())t.frame&&(t.placed||t.dataset.mode!=="inline")&&t.sendMode()}get fullscreen(){return[...this.#t.values()].find(t=>t.dataset.mode==="fullscreen"&&!t.hidden)}#l=(t,e)=>{for(let s of this.#t.values())s!==t&&s.dataset.mode===e&&s.setMode("inline")};#h=()=>{let t=this.fullscreen;document.body.toggleAttribute("data-covered",t!==void 0);for(let e of this.#t.values())e.inert=t!==void 0&&e!==t}};var T=class{#t;#n;#e;state="connecting";constructor(t,{url:e,token:s},o){this.number=t,this.#t=o.views,this.#n=o.questions,this.#e=o,this.link=new k({url:e,token:s,on:this.#i})}notify=t=>this.link.send(g,JSON.stringify(t));send=(t,e)=>this.link.send(t,e);#s={mount:t=>this.#t.mount(this,t),unmount:({view:t})=>this.#t.drop(this,t),trouble:({view:t,reason:e})=>this.#t.get(this,t)?.setTrouble(e),gone:t=>this.#t.showGone(this,t),marks:t=>this.#t.get(this,t.view)?.setMarks(t),clear:({origins:t})=>this.#t.clearStorage(t),named:t=>this.#t.get(this,t.view)?.name(t),mode:({view:t,mode:e})=>this.#t.get(this,t)?.setMode(e),ask:t=>this.#n.ask(this,t,e=>this.#r(t,e)),unask:({id:t})=>this.#n.withdraw(this,t),download:({name:t,mime:e,data:s})=>Mt(t,e,s)};#r({id:t,kind:e,url:s},o){this.notify({do:"answer",id:t,value:o}),e==="link"&&o&&window.open(s,"_blank","noopener,noreferrer")}#o(){this.#t.clear(this),this.#n.clear(this)}#i={frame:(t,e)=>{let s=JSON.parse(e);t===g?(this.#s[s.do]??this.#e.onMessage)(s):this.#t.get(this,t)?.post(s)},state:(t,e)=>{this.state=t,t==="over"?this.#o():this.#t.reached(this,t==="connected"),this.#e.onState(this,e)},fresh:()=>{this.#o(),this.#e.onFresh?.()},flood:t=>{this.#t.drop(this,t),this.notify({do:"broken",view:t,reason:"it sends more than the host takes"})}}};function Mt(i,t,e){let s=Uint8Array.from(atob(e),r=>r.charCodeAt(0)),o=URL.createObjectURL(new Blob([s],{type:t}));n("a",{href:o,download:i}).click(),setTimeout(()=>URL.revokeObjectURL(o),1e4)}var Y=i=>({do:"surroundings",value:{locale:navigator.language,timeZone:Intl.DateTimeFormat().resolvedOptions().timeZone,userAgent:"transom",platform:"web",deviceCapabilities:{touch:navigator.maxTouchPoints>0,hover:matchMedia("(hover: hover)").matches},...i}});var Q=500,$t=1500,Ot=100,Z=2e4,Lt=i=>i.length<=Z?i:`${i.slice(0,Z)}
… (${i.length} characters)`,qt=i=>{let t=["bytes","KB","MB"],e=0;for(;i>=1024&&e<2;e+=1)i/=1024;return`${e?i.toFixed(1):i} ${t[e]}`},u=i=>n("p",{text:i}),V=i=>n("pre",{text:Lt(i),tabindex:"0"}),tt={approve:{title:({tool:i,by:t,opens:e})=>[e?"Let ":t==="view"?"Let the View call its server's ":"Let the model call ",n("code",{text:i}),e?" open a View?":"?"],body:i=>[...Ct(i),...Rt(i),...Nt(i)],answers:[["Allow","allow"],["Always allow","always"],["Refuse","deny"]]},link:{title:({url:i})=>[i.startsWith("mailto:")?"Write this mail?":`Open ${et(i).host}?`],body:({url:i})=>[u("The View wants to open:"),V(et(i).href)],answers:[["Open",!0],["Refuse",!1]]},download:{title:({files:i})=>[i.length===1?"Save this file?":`Save ${i.length} files?`],body:({files:i})=>[u("The View wants to save:"),V(i.map(t=>`${t.name}  (${qt(t.bytes)})`).join(`
`))],answers:[["Save",!0],["Refuse",!1]]},pin:{title:()=>["Keep this View open?"],body:({reason:i})=>[u("It would not be closed to make room for others, until you close it."),...i?[u("The View says why:"),n("blockquote",{text:i})]:[]],answers:[["Keep open",!0],["Refuse",!1]]},withdrawn:{title:()=>["That question was withdrawn"],body:()=>[u("Whoever asked does not need an answer any more.")],answers:[["Next question",null]]}},N={asker:null,question:{kind:"withdrawn"},onAnswer(){}};function et(i){try{return new URL(i)}catch{return{href:i,host:"this link"}}}function Ct({description:i,opens:t}){return i?[u(`The ${t?"server":"View"} says what it does:`),n("blockquote",{text:i})]:[]}function Rt({arguments:i}){return Object.keys(i).length===0?[u("It is called without arguments.")]:[u("It is called with:"),V(JSON.stringify(i,null,2))]}function Nt({changed:i,granted:t=[]}){let e=[];return i&&e.push("You always allowed this tool. It has changed since, so you are asked again."),t.length&&e.push(`You always allow this View: ${t.join(", ")}.`),e.map(u)}function Vt(){let i=document.activeElement;for(;i?.shadowRoot?.activeElement;)i=i.shadowRoot.activeElement;return i}var M=class{#t;#n=n("div",{class:"questions","aria-live":"polite"});#e;#s;#r=[];#o=null;#i=null;#a=[];#l=null;#h=Q;#d=0;#p=0;#c=!1;constructor(t,e,s=()=>{}){this.#t=t,this.#e=e,this.#s=s,C(t).append(this.#n),addEventListener("pointerdown",()=>this.#v(),!0),addEventListener("keydown",({key:o})=>["Enter"," "].includes(o)&&this.#v(),!0),addEventListener("resize",()=>this.#b())}ask(t,e,s){tt[e.kind]&&(this.#r.push({asker:t,question:e,onAnswer:s}),this.#o?this.#g():this.#f(this.#r.shift()))}withdraw(t,e){this.#w(s=>s.asker===t&&s.question.id===e)}clear(t){this.#w(e=>e.asker===t)}#w(t){this.#r=this.#r.filter(s=>!t(s));let e=this.#r.length>0;this.#o&&t(this.#o)?this.#f(e?N:null):this.#o===N&&!e?this.#f(null):this.#g()}#u(t){let{onAnswer:e}=this.#o;this.#f(this.#r.shift()??null),e(t)}#f(t){let e=Vt();this.#o=t,this.#i?.remove(),this.#i=t&&this.#m(t.question);let s=t?this.#e(t.asker,t.question):this.#e();clearInterval(this.#p),this.#i&&(this.#h=e instanceof HTMLIFrameElement?$t:Q,this.#p=setInterval(()=>this.#y(),Ot),this.#n.append(this.#i),(t.question.kind!=="approve"&&e===s||!e||e===document.body)&&this.#i.focus(),this.#b()),this.#g()}#m(t){let{title:e,body:s,answers:o}=tt[t.kind],r=n("h2",{},...e(t));this.#l=n("span",{class:"more"}),this.#a=o.map(([h,l],c)=>{let y=n("button",{type:"button",text:h,class:c?"":"main"});return y.addEventListener("click",()=>this.#c&&this.#u(l)),y});let a=n("section",{class:"question",part:"question",role:"alertdialog","aria-label":r.textContent,tabindex:"-1"},n("div",{class:"asker"},t.server?R(t):"",this.#l),r,...s(t),n("div",{class:"buttons"},...this.#a));return a.addEventListener("keydown",h=>{h.key==="Escape"&&(h.stopPropagation(),this.#u(o.at(-1)[1]))}),a}#g(){let t=this.#r.length,e=t+(this.#o&&this.#o!==N?1:0);this.#i&&(this.#l.textContent=t?`and ${t} more`:""),this.#t.toggleAttribute("data-asking",!!this.#i),this.#s(e)}#v(){this.#c||this.#b()}#b(){this.#d=performance.now(),this.#y()}#y(){let t=performance.now();(document.hidden||!document.hasFocus())&&(this.#d=t),this.#c=t-this.#d>=this.#h;for(let e of this.#a)e.ariaDisabled=String(!this.#c)}};var ot=matchMedia("(prefers-color-scheme: dark)"),d=new Map,$=new Map,O=new Set;function b(i,t,e,s=!1){let o=new CustomEvent(t,{bubbles:!0,composed:!0,cancelable:s,detail:e});return(i??document).dispatchEvent(o),o.defaultPrevented}var m=(i,t)=>f.notify({do:"place",view:i,value:t}),I=class extends A{static observedAttributes=["view"];#t=null;get placed(){return!0}connectedCallback(){this.#n(this.getAttribute("view"))}disconnectedCallback(){super.disconnectedCallback(),this.#n(null)}attributeChangedCallback(t,e,s){this.isConnected&&this.#n(s)}#n(t){if(t!==this.#t&&(this.#t&&d.get(this.#t)===this&&(d.delete(this.#t),v.drop(f,this.#t),m(this.#t,"gone")),this.#t=t,!!t)){if(d.has(t)){this.note("This View is shown elsewhere on this page.");return}d.set(t,this),this.note("Opening…"),m(t,document.hidden?"free":"take")}}},_=class extends HTMLElement{connectedCallback(){O.add(this);for(let t of $.keys())this.place(t)}disconnectedCallback(){O.delete(this)}place(t){d.has(t)||this.append(n("transom-view",{view:t}))}},zt={offer({new:i,...t}){let{view:e}=t;$.set(e,t);let[s]=O;d.has(e)?m(e,"free"):i&&b(s,"opened",t),d.has(e)||s?.place(e)},elsewhere({view:i}){d.get(i)?.note("This View is open in another tab or window.",{"Show it here":()=>m(i,"again")})},absent({view:i,reason:t,again:e}){let s=d.get(i);$.delete(i),s?.note(`This View was closed: ${t}.`,e?{"Open again":()=>m(i,"again")}:{}),b(s,"closed",{view:i,reason:t}),O.has(s?.parentElement)&&s.remove()}},W=n("div",{id:"transom-questions"}),z=new M(W,(i,t)=>v.pointAt(f,t?.view)),p=new Map,It={ask(i,t,e){let{id:s,do:o,...r}=t,a=new AbortController,h=c=>p.delete(s)&&e(c);p.set(s,a);let l={...r,answer:h,withdrawn:a.signal};b(d.get(t.view),"approval",l,!0)||p.delete(s)&&(W.isConnected||document.body.append(W),z.ask(i,t,e))},withdraw(i,t){p.get(t)?.abort(),p.delete(t),z.withdraw(i,t)},clear(i){for(let t of[...p.keys()])this.withdraw(i,t);z.clear(i)}};function _t(){let{colorScheme:i}=getComputedStyle(document.documentElement);return(i.includes("light")&&i.includes("dark")?ot.matches:i.includes("dark"))?"dark":"light"}var st="";function F(i){let t=_t();(i||t!==st)&&f.notify(Y({theme:t})),st=t}var it=i=>i==="unknown"?"You are not signed in, or this page may not show Views.":`${i}.`,v=new S(i=>d.get(i)??document.createElement("transom-view")),f=new T(0,{url:new URL("socket",import.meta.url).href.replace("http","ws"),token:""},{views:v,questions:It,onMessage:i=>zt[i.do]?.(i),onFresh(){$.clear();for(let i of d.keys())m(i,document.hidden?"free":"take")},onState({state:i},t){if(i==="connected")F(!0);else if(i==="reconnecting")b(document,"problem",{kind:"connection",message:"No connection. Trying again…"});else if(i==="over"){for(let e of d.values())e.note(it(t));b(document,"problem",{kind:"over",message:it(t)})}}});addEventListener("resize",()=>v.resized());addEventListener("keydown",({key:i})=>{i==="Escape"&&v.fullscreen?.setMode("inline")});addEventListener("pagehide",()=>f.link.leave());addEventListener("pageshow",({persisted:i})=>i&&location.reload());addEventListener("online",()=>f.link.hurry());document.addEventListener("visibilitychange",()=>f.link.hurry());ot.addEventListener("change",()=>F());new MutationObserver(()=>F()).observe(document.documentElement,{attributes:!0});customElements.define("transom-view",I);customElements.define("transom-stage",_);
